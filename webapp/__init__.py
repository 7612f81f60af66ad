"""What people see and what is remembered."""
