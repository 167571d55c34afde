"""Python functions run as on AWS: own interpreter, own variables, own errors."""

import json

import pytest
from websockets.sync.client import connect

pytestmark = pytest.mark.cloud


@pytest.fixture(scope="module")
def seen(cloud, outputs):
    return cloud.invoke(outputs["Probe"], {"do": "see"})


def test_an_error_has_the_name_of_its_class(cloud, outputs):
    answer = cloud.invoke(outputs["Probe"], {"do": "raise"})

    assert (answer["errorType"], answer["errorMessage"]) == ("Rejected", "as asked")


def test_a_state_machine_catches_an_error_by_its_class(cloud, outputs, wait_for):
    machines = cloud.client("stepfunctions")
    run = machines.start_execution(stateMachineArn=outputs["Machine"])["executionArn"]

    def ended():
        found = machines.describe_execution(executionArn=run)
        return found if found["status"] != "RUNNING" else None

    assert json.loads(wait_for(ended, 20)["output"]) == "caught by class name"


def test_a_function_sees_its_own_variables_and_none_of_the_machine(seen):
    environment = seen["environment"]

    assert environment["GREETING"] == "hello"
    assert environment["AWS_EXECUTION_ENV"] == "AWS_Lambda_python3.13"
    assert not [
        name for name in environment if name.startswith(("INSTAR_", "GATEWAY_", "MINISTACK_"))
    ]


def test_a_function_runs_in_an_interpreter_of_its_own(seen):
    assert seen["python"].endswith("/runtime")


def test_own_code_comes_before_the_layers(seen):
    assert seen["marks"] == "function"
    assert "/layers/" in seen["layer"]


def test_a_variable_that_names_an_api_reaches_the_local_one(seen, outputs):
    assert seen["environment"]["SOCKET_URL"] == outputs["SocketUrl"]
    assert seen["environment"]["CONNECTIONS"] == outputs["SocketUrl"].replace("ws", "http", 1)


def test_a_function_answers_over_a_socket(outputs):
    with connect(outputs["SocketUrl"], proxy=None) as socket:
        socket.send("héllo 漢")

        assert socket.recv(timeout=20) == "héllo 漢"
