"""Sessions and turns: from an inbound message to a reply, once, in order."""
