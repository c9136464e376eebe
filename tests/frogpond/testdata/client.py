#!/usr/bin/env python3
"""A client of frogpond's server, written from PROTOCOL.md: it joins, walks, and checks each state.

client.py HOST:PORT [SECONDS [NAME]] prints a line of JSON: how often it joined and was refused, how
many states it decoded, how many were wrong, and how many units away from its start it came.
"""
import hmac, json, math, os, select, socket, struct, sys, time, zlib

HELLO, CHALLENGE, JOIN, ACCEPT, REFUSE, INPUTS, STATE, LEAVE, NOTICE = range(1, 10)
VERSION, ANY_ROOM, WALK, SPOKEN, VIEWS, LEAD = 1, 255, 1, 4, 32, 8


class Client:
    def __init__(self, host, port, name):
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
        self.socket = socket.socket(family, kind)
        self.send = lambda packet: self.socket.sendto(packet, address)
        self.name = name.encode()[:16]
        self.joined = self.refused = self.states = self.wrong = self.moved = 0
        self.session, self.key, self.rate, self.closing, self.heading = 0, b"", 35, False, 0
        self.start = self.last = None
        self.ask(time.monotonic())

    def ask(self, when):
        self.playing, self.cookie, self.nonce, self.asked = False, None, os.urandom(8), when
        self.again = when

    def mac(self, text):
        return hmac.digest(self.key, text, "sha256")[:8]

    def say(self, kind, payload=b""):
        self.sent += 1
        head = struct.pack("<BxxxII", kind, self.session, self.sent)
        self.send(head + self.mac(head + payload) + payload)

    def handshake(self, now):
        if now < self.again:
            return
        if now - self.asked > 8:  # the cookie may be too old
            self.ask(now)
        self.again = now + 0.5  # Hello or Join, every half second
        if not self.cookie:
            return self.send(struct.pack("<BBxx8s52x", HELLO, VERSION, self.nonce))
        join = struct.pack("<BBBB8s16s16sI4x", JOIN, VERSION, ANY_ROOM, 0, self.nonce, self.cookie,
                           self.name, self.session)
        self.send(join + (self.mac(join) if self.session else bytes(8)) + bytes(36))

    def answer(self, p, now):
        if self.playing or p[4:12] != self.nonce:
            return
        if p[0] == CHALLENGE and len(p) == 32 and not self.cookie:
            self.cookie, self.again = p[12:28], now
        elif p[0] == ACCEPT and len(p) == 80:
            session, key, tick, epoch, _, self.rate = struct.unpack_from("<I32sIBBB", p, 12)
            if (session, key) != (self.session, self.key):
                self.session, self.key, self.views = session, key, {}
                self.sent = self.newest = self.ack = 0
            self.playing, self.heard, self.joined = True, now, self.joined + 1
            self.leap(epoch, tick + LEAD)
        elif p[0] == REFUSE and len(p) == 32:
            self.refused, self.session = self.refused + 1, 0
            self.ask(now + max(1, struct.unpack_from("<I", p, 24)[0] / 1000))

    def handle(self, p, now):
        if len(p) < 20 or p[0] < INPUTS:
            return self.answer(p, now)
        session, sequence = struct.unpack_from("<II", p, 4)
        if not self.playing or session != self.session or sequence <= self.newest:
            return
        if not hmac.compare_digest(self.mac(p[:12] + p[20:]), p[12:20]):
            return
        self.newest, self.heard = sequence, now  # older ones are useless
        if p[0] == STATE and len(p) >= 60:
            self.state(p, sequence)
        elif p[0] == NOTICE and len(p) == 36:
            self.closing |= p[20] == 1
            if p[20] in (2, 4):  # the session is over
                self.session = 0
                self.ask(now)

    def state(self, p, sequence):
        epoch, early, _, count, tick, base, crc, x, y = struct.unpack_from("<BbBBIIIii", p, 20)
        old = self.views.get(base % VIEWS, (None,)) if base else (0, {})
        if old[0] != base:
            return
        things = operate(dict(old[1]), p, 60)
        text = struct.pack("<BxxxI", epoch, tick) + p[36:60]
        for key in sorted(things):  # kind, number; heading, x, y
            text += struct.pack("<BHBhh", *key, *things[key])
        self.states += 1
        if zlib.crc32(text) != crc or len(things) != count:
            self.wrong += 1
            return
        self.views[sequence % VIEWS] = sequence, things
        self.ack, self.settle = sequence, self.settle - 1
        if epoch != self.epoch or not tick < self.tick < tick + 48:
            self.leap(epoch, tick + LEAD)
        elif self.settle < 0 and early != -128 and not 0 <= early <= LEAD:
            self.leap(epoch, self.tick + 2 - early)
        self.start = self.start or (x, y)
        self.moved = max(self.moved, int(math.dist(self.start, (x, y)) / 65536))
        if self.states % 16 == 0:  # turn at an obstacle
            self.heading = (self.heading + 5 * (self.last == (x, y))) % 16
            self.last = x, y

    def leap(self, epoch, tick):  # the effect shows within a second
        self.epoch, self.tick, self.inputs, self.settle = epoch, tick, [], self.rate

    def walk(self):
        self.tick += 1
        self.inputs = [struct.pack("<BBxxxx", self.heading, WALK)] + self.inputs[:SPOKEN - 1]
        head = struct.pack("<IBBxxI", self.ack, self.epoch, len(self.inputs), self.tick)
        self.say(INPUTS, head + b"".join(self.inputs))

    def run(self, seconds):
        due, end = time.monotonic(), time.monotonic() + seconds
        while due < end and not self.closing:
            now = time.monotonic()
            if now >= due:
                due += 1 / self.rate
                if self.playing and now - self.heard > 5:
                    self.ask(now)
                self.walk() if self.playing else self.handshake(now)
            elif select.select([self.socket], [], [], due - now)[0]:
                self.handle(self.socket.recv(2048), now)
        for _ in range(3 * self.playing):
            self.say(LEAVE)
        said = "joined", "refused", "states", "wrong", "moved"
        print(json.dumps({name: getattr(self, name) for name in said}))


def operate(things, p, at):  # turns the things of a base into those of a view
    while at < len(p):
        kind, number, mask = struct.unpack_from("<BHB", p, at)
        at += 4
        values = list(things.pop((kind, number), (0, 0, 0)))
        for bit, value, form in (1, 1, "b"), (2, 1, "<h"), (4, 2, "b"), (8, 2, "<h"), (16, 0, "B"):
            if mask & bit:
                said = struct.unpack_from(form, p, at)[0]
                values[value] = said + (values[value] if form == "b" else 0)
                at += struct.calcsize(form)
        if mask:
            things[kind, number] = tuple(values)
    return things


if __name__ == "__main__":
    host, _, port = sys.argv[1].rpartition(":")
    client = Client(host.strip("[]"), int(port), (sys.argv[3:] or ["python"])[0])
    client.run(float((sys.argv[2:] or [10])[0]))
