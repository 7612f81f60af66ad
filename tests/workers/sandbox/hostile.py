"""What a stranger might run in the throw-away process. `ATTACKS` are programs of one line of purpose each."""

ENVIRONMENT = """
import os
for pid in range(1, 2**16):
    try:
        print(open(f"/proc/{pid}/environ").read())
    except OSError:
        pass
print(dict(os.environ))
for folder in ("/run/secrets", os.path.expanduser("~/.ssh"), os.path.expanduser("~")):
    try:
        print(folder, os.listdir(folder))
    except OSError as error:
        print(folder, error.strerror)
"""
ENDLESS = "while True: pass"
ASLEEP = "import time; time.sleep(1000)"
GREEDY = "held = [bytearray(2**24) for _ in range(1000)]"
LOUD = "import os; [os.write(1, b'x' * 65536) for _ in range(100)]"
TALKATIVE = "import os; fd = int(os.environ['LOCKSTEP_ANSWER_FD']); [os.write(fd, b'x' * 65536) for _ in range(100)]"
NETWORK = """
import socket, sys
for address in (("127.0.0.1", PORT), ("192.0.2.1", 80)):
    try:
        socket.create_connection(address, 2)
        print("connected")
    except OSError as error:
        print("refused:", error.strerror)
"""
CURIOUS = """
import os
for path in PATHS:
    try:
        print(os.listdir(path) if os.path.isdir(path) else open(path).read())
    except OSError as error:
        print(error.strerror)
"""
WRITER = """
import os
for path in PATHS:
    try:
        open(os.path.join(path, "planted"), "w")
        print("planted in", path)
    except OSError as error:
        print(path, error.strerror)
"""
FORKING = """
import os, subprocess
for begin in (os.fork, lambda: subprocess.run(["/bin/true"])):
    try:
        begin()
        print("begun")
    except OSError as error:
        print("refused:", error.strerror)
"""
SIGNALLING = """
import os
for pid in (OTHER, os.getppid()):
    try:
        os.kill(pid, 0)
        print("reached", pid)
    except OSError as error:
        print("refused:", error.strerror)
"""
THREADS = """
import threading, time
threading.stack_size(65536)
for _ in range(20_000):
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
print("started")
"""
FILLING = """
import os, tempfile
held = [tempfile.TemporaryFile() for _ in range(100)]
for file in held:
    file.write(b"x" * 2**26)
    file.flush()
print("filled")
"""
DETACHED = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.close(1), os.close(2)
        time.sleep(1000)
os._exit(0)
"""
