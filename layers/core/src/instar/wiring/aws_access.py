"""Who may call a stack: keys, grants and tickets, without memory or a search engine."""

from instar.access.keyring import Keyring
from instar.adapters.aws.dynamo_access import DynamoGrants, DynamoKeys
from instar.clock import utc_now
from instar.ids import new_id


def keyring() -> Keyring:
    """Keys and grants of a stack whose access table is bound."""
    return Keyring(keys=DynamoKeys(), grants=DynamoGrants(utc_now), clock=utc_now, new_id=new_id)
