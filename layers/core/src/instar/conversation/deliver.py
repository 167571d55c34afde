"""Replies on their way out: claimed, sent, settled.

The idempotency key is the reply's id. A claim that ran out means that an earlier try may have gone
out: the reply is sent once more, visibly marked as a repeat, never silently doubled, never lost.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from instar.channels.outcomes import NotDelivered, Uncertain
from instar.channels.ports import Channel
from instar.conversation.envelopes import Reply
from instar.conversation.ports import Claim, NewEvent, Outbox, Sessions
from instar.errors import InstarError

log = logging.getLogger(__name__)
CLAIM_SECONDS = 60.0
ATTEMPTS = 20
REPEAT_MARK = "(sent again: the first may not have arrived)\n\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """Sends replies through their channel. Channel `session` has no outside."""

    outbox: Outbox
    sessions: Sessions
    channels: Mapping[str, Channel]

    def run(self, reply: Reply) -> None:
        """Sends the reply unless that is done. Raises what kept it from going out (deliver it
        again), and Conflict while somebody else sends it.
        """
        claim = self.outbox.claim(reply.id, seconds=CLAIM_SECONDS)
        if claim is None:
            return
        channel = self.channels.get(reply.address.channel)
        if channel is None:
            self.outbox.settle(reply.id, state="sent")
            return
        if claim.attempts > ATTEMPTS:
            self._give_up(claim.reply, f"{ATTEMPTS} tries failed")
            return
        self._send(channel, claim)

    def _send(self, channel: Channel, claim: Claim) -> None:
        reply = claim.reply
        text = REPEAT_MARK + reply.text if claim.repeat else reply.text
        address = reply.address
        try:
            channel.send(address.conversation, address.thread, text, key=reply.id)
        except NotDelivered as error:
            self._give_up(reply, error.detail)
        except Uncertain:
            raise  # the claim runs out by itself, and the next try is marked as a repeat
        except InstarError:
            self.outbox.settle(reply.id, state="pending")
            raise
        else:
            self.outbox.settle(reply.id, state="sent")

    def _give_up(self, reply: Reply, detail: str) -> None:
        log.warning("reply_given_up", extra={"reply": reply.id})
        self.outbox.settle(reply.id, state="given_up", detail=detail)
        notice = NewEvent(
            kind="notice",
            data={"turn": reply.turn, "text": f"The reply could not be delivered: {detail}"},
        )
        self.sessions.publish(reply.session, [notice])
