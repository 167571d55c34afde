"""A table's time to live comes from the template."""

import pytest

pytestmark = pytest.mark.cloud


def test_the_template_sets_the_time_to_live(cloud, outputs):
    found = cloud.client("dynamodb").describe_time_to_live(TableName=outputs["Table"])

    assert found["TimeToLiveDescription"] == {
        "TimeToLiveStatus": "ENABLED",
        "AttributeName": "expires",
    }
