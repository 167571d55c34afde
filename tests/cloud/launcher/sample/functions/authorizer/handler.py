"""Lets in whoever says the word."""


def handler(event, context):
    return {"isAuthorized": event["headers"].get("x-word") == "please"}
