"""Components of phased workflows (contract 4): retries, metrics, learnings and subagents."""
