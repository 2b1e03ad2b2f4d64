"""The checks of an agent run's own (contracts 2 and 3): turns, conversation, requests, money, and the end."""
