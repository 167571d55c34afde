"""Repair: an HTTP API that SAM wrote has no routes.

SAM writes routes, authorizers and CORS into the API's OpenAPI `Body`, which the emulator drops.
Seen as: the stack is CREATE_COMPLETE and every route answers 404 {"message": "Not Found"}.
"""

import json
from collections.abc import Iterator
from typing import Any

from ministack.services.cloudformation import provisioners

API_TYPE = "AWS::ApiGatewayV2::Api"
CORS_KEY = "corsConfiguration"

gateway = provisioners._apigw_v2
original_create = provisioners._apigw_v2_api_create
original_update = provisioners._apigw_v2_api_update

Properties = dict[str, Any]
Made = tuple[str, dict[str, Any]]


def repair() -> None:
    handlers = provisioners._RESOURCE_HANDLERS[API_TYPE]
    handlers["create"], handlers["update"] = create_api, update_api


def create_api(logical_id: str, properties: Properties, stack: str) -> Made:
    made: Made = original_create(logical_id, properties, stack)
    import_cors(made[0], properties)
    import_body(made[0], properties.get("Body"))
    return made


def update_api(
    physical_id: str, old: Properties, new: Properties, stack: str, logical_id: str | None = None
) -> Made:
    made: Made = original_update(physical_id, old, new, stack, logical_id)
    import_cors(made[0], new)
    if new.get("Body") != old.get("Body"):
        for store in (gateway._routes, gateway._integrations, gateway._authorizers):
            store[made[0]] = {}
        import_body(made[0], new.get("Body"))
    return made


def import_cors(api_id: str, properties: Properties) -> None:
    cors = properties.get("CorsConfiguration")
    body = properties.get("Body")
    given: Any = None
    if isinstance(cors, dict):
        given = {name[0].lower() + name[1:]: value for name, value in cors.items()}
    elif isinstance(body, dict):
        given = body.get("x-amazon-apigateway-cors")
    if given:
        gateway._apis[api_id][CORS_KEY] = given


def import_body(api_id: str, body: Any) -> None:
    if not isinstance(body, dict):
        return
    authorizers = dict(create_authorizers(api_id, body))
    for path, operations in (body.get("paths") or {}).items():
        for method, operation in operations.items():
            if not isinstance(operation, dict):
                continue
            required = operation.get("security", body.get("security")) or []
            names = [name for entry in required for name in entry if name in authorizers]
            create_route(api_id, method, path, operation, authorizers[names[-1]] if names else {})


def create_authorizers(api_id: str, body: Properties) -> Iterator[tuple[str, dict[str, str]]]:
    schemes = (body.get("components") or {}).get("securitySchemes") or {}
    for name, scheme in schemes.items():
        given = scheme.get("x-amazon-apigateway-authorizer") or {}
        source = given.get("identitySource") or "$request.header.Authorization"
        if isinstance(source, str):
            source = [part.strip() for part in source.split(",")]
        is_jwt = given.get("type") == "jwt"
        made = gateway._create_authorizer(
            api_id,
            {
                "name": name,
                "authorizerType": "JWT" if is_jwt else "REQUEST",
                "identitySource": source,
                "jwtConfiguration": given.get("jwtConfiguration", {}),
                "authorizerUri": given.get("authorizerUri", ""),
                "authorizerPayloadFormatVersion": given.get(
                    "authorizerPayloadFormatVersion", "2.0"
                ),
                "enableSimpleResponses": given.get("enableSimpleResponses", False),
            },
        )
        yield (
            name,
            {
                "authorizerId": id_in(made, "authorizerId"),
                "authorizationType": "JWT" if is_jwt else "CUSTOM",
            },
        )


def create_route(
    api_id: str, method: str, path: str, operation: Properties, security: dict[str, str]
) -> None:
    integration = operation.get("x-amazon-apigateway-integration")
    if not integration:
        return
    made = gateway._create_integration(
        api_id,
        {
            "integrationType": integration.get("type", "aws_proxy").upper(),
            "integrationUri": integration.get("uri", ""),
            "payloadFormatVersion": integration.get("payloadFormatVersion", "2.0"),
            "timeoutInMillis": integration.get("timeoutInMillis", 30000),
        },
    )
    verb = "ANY" if method == "x-amazon-apigateway-any-method" else method.upper()
    gateway._create_route(
        api_id,
        {
            "routeKey": "$default" if path == "/$default" else f"{verb} {path}",
            "target": "integrations/" + id_in(made, "integrationId"),
            **security,
        },
    )


def id_in(response: tuple[int, dict[str, str], str | bytes], key: str) -> str:
    return str(json.loads(response[2])[key])
