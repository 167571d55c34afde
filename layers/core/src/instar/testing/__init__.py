"""What tests share: builders, clocks, local servers that replay wire formats."""
