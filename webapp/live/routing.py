sockets: list = []
