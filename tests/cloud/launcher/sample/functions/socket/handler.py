"""Says back what it hears, over the connections' address in its variables."""

import os

import boto3

connections = boto3.client("apigatewaymanagementapi", endpoint_url=os.environ["CONNECTIONS"])


def handler(event, context):
    request = event["requestContext"]
    if request["routeKey"] == "$default":
        connections.post_to_connection(ConnectionId=request["connectionId"], Data=event["body"])
    return {"statusCode": 200}
