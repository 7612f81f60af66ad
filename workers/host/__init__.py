"""The training host: says what it has, runs the gangs it is given, ships what they write."""
