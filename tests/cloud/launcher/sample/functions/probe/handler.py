"""Tells what a function sees, writes as a function may, and fails when asked."""

import os
import sys
import time

import boto3
import iniconfig
import marks


class Rejected(Exception):
    """An error of the function's own class."""


def handler(event, context):
    if "requestContext" in event:
        return {"statusCode": 200, "body": event["rawPath"]}
    if "Records" in event:
        return time.sleep(float(event["Records"][0]["body"]))
    if event["do"] == "raise":
        raise Rejected("as asked")
    if event["do"] == "write":
        return write(event["key"], event["condition"])
    if event["do"] == "see":
        return see()
    return event["do"]


def write(key, condition):
    store = boto3.client("s3")
    try:
        store.put_object(Bucket=os.environ["BUCKET"], Key=key, Body=b"text", **condition)
    except store.exceptions.ClientError as error:
        return error.response["Error"]["Code"]
    return "written"


def see():
    return {
        "environment": dict(os.environ),
        "marks": marks.ORIGIN,
        "layer": iniconfig.__file__,
        "python": sys.prefix,
    }
