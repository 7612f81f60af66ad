"""What runs on training hosts, and the contract between them and the web."""
