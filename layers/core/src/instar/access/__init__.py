"""Access: the owner, API keys, browser sessions, tickets, secrets."""
