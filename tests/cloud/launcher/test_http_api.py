"""HTTP APIs that SAM wrote have their routes, authorizers and CORS, also after a change."""

import json
import uuid

import httpx
import pytest

pytestmark = pytest.mark.cloud


@pytest.fixture(scope="module")
def web(outputs):
    with httpx.Client(base_url=outputs["Url"], trust_env=False, timeout=20) as client:
        yield client


def test_a_route_reaches_its_function(web):
    answer = web.post("open/a/b")

    assert (answer.status_code, answer.text) == (200, "/open/a/b")


def test_an_unknown_route_is_not_found(web):
    assert web.get("nothing").status_code == 404


def test_a_bearer_key_is_the_functions_business(web):
    """With IAM enforced too: only a route that asks for IAM looks at Authorization."""
    answer = web.get("open/a", headers={"Authorization": "Bearer abc"})

    assert answer.status_code == 200


def test_an_authorizer_is_asked(web):
    statuses = [
        web.get("guarded", headers=headers).status_code
        for headers in ({}, {"X-Word": "no"}, {"X-Word": "please"})
    ]

    assert statuses == [401, 403, 200]


def test_a_preflight_is_answered(web):
    ask = {"Origin": "http://127.0.0.1", "Access-Control-Request-Method": "GET"}
    answer = web.options("open/a", headers=ask)

    assert answer.status_code == 204
    assert answer.headers["access-control-allow-origin"] == "http://127.0.0.1"


def test_a_changed_body_replaces_the_routes(cloud):
    formation, gateway = cloud.client("cloudformation"), cloud.client("apigatewayv2")
    stack = f"changed-body-{uuid.uuid4().hex[:8]}"
    formation.create_stack(StackName=stack, TemplateBody=api_with("/before"))
    formation.get_waiter("stack_create_complete").wait(StackName=stack, WaiterConfig={"Delay": 1})
    formation.update_stack(StackName=stack, TemplateBody=api_with("/after"))
    formation.get_waiter("stack_update_complete").wait(StackName=stack, WaiterConfig={"Delay": 1})

    resource = formation.describe_stack_resource(StackName=stack, LogicalResourceId="Api")
    api = resource["StackResourceDetail"]["PhysicalResourceId"]
    routes = [route["RouteKey"] for route in gateway.get_routes(ApiId=api)["Items"]]
    formation.delete_stack(StackName=stack)

    assert routes == ["GET /after"]


def api_with(path):
    integration = {"type": "http_proxy", "uri": "http://127.0.0.1:1", "httpMethod": "GET"}
    operation = {"x-amazon-apigateway-integration": integration}
    body = {"openapi": "3.0.1", "info": {"title": "api"}, "paths": {path: {"get": operation}}}
    api = {"Type": "AWS::ApiGatewayV2::Api", "Properties": {"Body": body}}
    return json.dumps({"Resources": {"Api": api}})
