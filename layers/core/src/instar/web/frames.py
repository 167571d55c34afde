"""Pure: what a client may say on a socket, parsed and bounded; both kinds of socket use it."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from instar.errors import InstarError, Invalid, TooLarge

FRAME_CHARACTERS = 262_144
LARGEST_NUMBER = 2**53


class _Frame(BaseModel):
    model_config = ConfigDict(frozen=True)

    session: str = Field(max_length=400)


class MessageFrame(_Frame):
    """Say something. `id` is the client's own: sent twice, it is the same message. `receipt` asks
    for an `accepted` frame that names the turn.
    """

    kind: Literal["message"]
    text: str
    id: str | None = Field(default=None, max_length=200)
    receipt: bool = False


class ResumeFrame(_Frame):
    """Send what happened after event number `after`, and go on."""

    kind: Literal["resume"]
    after: int = Field(default=0, ge=0, le=LARGEST_NUMBER)


class StopFrame(_Frame):
    """Stop the reply that is being written."""

    kind: Literal["stop"]


Frame = MessageFrame | ResumeFrame | StopFrame
_FRAME: TypeAdapter[Frame] = TypeAdapter(Annotated[Frame, Field(discriminator="kind")])


def parsed_frame(text: str) -> Frame:
    """The frame. Raises TooLarge, Invalid."""
    if len(text) > FRAME_CHARACTERS:
        raise TooLarge(f"a frame has at most {FRAME_CHARACTERS:,} characters")
    try:
        return _FRAME.validate_json(text)
    except (ValidationError, ValueError) as error:
        raise Invalid(
            "this is no frame that the socket knows",
            fix='Send {"kind":"message","session","text","id"}, "resume" with "after", or "stop".',
        ) from error


def error_frame(error: InstarError, frame: Frame | None) -> dict[str, Any]:
    """How a refused frame is answered: it has no number, for nothing happened in the session."""
    about = {} if frame is None else {"session": frame.session}
    if isinstance(frame, MessageFrame):
        about["id"] = frame.id or ""
    return {"kind": "error", **about, **error.problem()}
