"""A bucket policy can tell conditional writes from others: tried as a function, root may all."""

import uuid

import pytest

pytestmark = pytest.mark.cloud


@pytest.fixture
def write(cloud, outputs):
    key = uuid.uuid4().hex

    def write(folder, condition):
        event = {"do": "write", "key": f"{folder}/{key}", "condition": condition}
        return cloud.invoke(outputs["Probe"], event)

    return write


def test_an_unconditional_write_is_denied(write):
    assert write("agents", {}) == "AccessDenied"


def test_a_creation_is_allowed_once(write):
    answers = [write("agents", {"IfNoneMatch": "*"}) for _ in range(2)]

    assert answers == ["written", "PreconditionFailed"]


def test_a_replacement_is_allowed_when_it_names_what_it_replaces(write):
    write("agents", {"IfNoneMatch": "*"})

    assert write("agents", {"IfMatch": '"0123"'}) == "PreconditionFailed"
    assert write("agents", {"IfMatch": '"1cb251ec0d568de6a929b520c4aed8d1"'}) == "written"


def test_other_folders_are_free(write):
    assert write("cache", {}) == "written"


def test_a_policy_about_a_role_holds_for_who_works_under_it(write):
    assert write("sealed", {"IfNoneMatch": "*"}) == "AccessDenied"
