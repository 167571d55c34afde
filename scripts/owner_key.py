"""Makes the owner's key of a stack, with the account's credentials: once, kept in Parameter Store.

    owner_key.py STACK

The key's row goes into the access table (hashed), the key itself into the SecureString that the
stack's output OwnerKeyParameter names. The secret of tombstone marks is made here too, so that no
function needs the right to write secrets. Running it again changes nothing.
"""

import base64
import secrets
import sys

from botocore.exceptions import ClientError

from instar.access.keyring import Keyring
from instar.access.tokens import OWNER_SCOPE
from instar.adapters.aws.clients import Clients
from instar.adapters.aws.dynamo_access import DynamoGrants, DynamoKeys
from instar.adapters.aws.rows import bind_tables
from instar.clock import utc_now
from instar.ids import new_id


def main(stack: str) -> int:
    """Makes what is missing."""
    clients = Clients()
    found = clients.other("cloudformation").describe_stacks(StackName=stack)["Stacks"][0]
    outputs = {each["OutputKey"]: each["OutputValue"] for each in found["Outputs"]}
    ssm = clients.ssm()
    parameter = outputs["OwnerKeyParameter"]
    if not exists(ssm, parameter):
        bind_tables(access=outputs["AccessTable"])
        keyring = Keyring(
            keys=DynamoKeys(), grants=DynamoGrants(utc_now), clock=utc_now, new_id=new_id
        )
        key, _ = keyring.create([OWNER_SCOPE])
        ssm.put_parameter(Name=parameter, Value=key, Type="SecureString")
    marks = f"/{stack}/secrets/tombstone_key"
    if not exists(ssm, marks):
        value = base64.b64encode(secrets.token_bytes(32)).decode()
        ssm.put_parameter(Name=marks, Value=value, Type="SecureString")
    return 0


def exists(ssm: object, name: str) -> bool:
    """Whether the parameter is there."""
    try:
        ssm.get_parameter(Name=name)  # type: ignore[attr-defined]  # boto3 makes it at run time
    except ClientError as error:
        if error.response["Error"]["Code"] == "ParameterNotFound":
            return False
        raise
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
