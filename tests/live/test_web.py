#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`partita live --web`: the page and what it posts, requests that must be refused, uploads, many connections; and the page
itself in headless Chromium, by chromedriver. With PortAudio's ALSA code and devices made of files."""
import base64
import contextlib
import glob
import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request

import numpy as np

import rig_live
from rig_live import dyadic, rig

import schemas # rig_live makes it known
from test_control import DEVICES, Steered


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Web(Steered):
    def setUp(self):
        super().setUp()
        self.port, self.token, self.host = free_port(), None, "127.0.0.1"
        said = self.run_program("live", "--ir", "ir.wav", *DEVICES, "--web", "x", rc=2, env=self.environment()).stderr
        if b"without libmicrohttpd" in said:
            self.skipTest("built without libmicrohttpd")
        self.assertIn(b"--web x: must be PORT or ADDRESS:PORT", said)
        os.mkdir("tmp")

    def begin(self, *arguments, address=None, irs=("ir.wav", "b.wav"), env=None):
        named = [word for ir in irs for word in ("--ir", ir)]
        child = self.start(*named, *DEVICES, "--web", address or self.port, "--max-taps", 100, *arguments,
                           env={"TMPDIR": self.folder + "/tmp", **(env or {})})
        url = child.stderr.readline().decode()
        self.assertRegex(url, r"^partita live: http://")
        self.token = (urllib.parse.parse_qs(urllib.parse.urlsplit(url.split()[-1]).query).get("token") or [None])[0]
        self.assertNotEqual(child.stderr.readline(), b"")  # what plays
        return child

    def request(self, method, path, body=None, connection=None, **headers):
        """Status and body of the answer."""
        open_here = connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=60 * rig_live.SLOWER)
        try:
            open_here.request(method, path, body, headers)
            answer = open_here.getresponse()
            self.headers = answer.headers
            return answer.status, answer.read()
        finally:
            if not connection:
                open_here.close()

    def with_token(self, path):
        return path + ("&" if "?" in path else "?") + "token=" + self.token if self.token else path

    def ask(self, line, connection=None):
        status, body = self.request("POST", self.with_token("/command"), line, connection)
        self.assertEqual(status, 200, body)
        return schemas.load(body)

    def upload(self, name, data, **headers):
        return self.request("POST", self.with_token("/load?name=" + urllib.parse.quote(name)), data, **headers)

    def quits(self, child, rc=0):
        self.ok("quit")
        return self.ends(child, rc)


class Requests(Web):
    def test_page_and_commands(self):
        child = self.begin()
        status, page = self.request("GET", "/")
        self.assertEqual((status, self.headers["Content-Type"]), (200, "text/html; charset=utf-8"))
        self.assertIn("default-src 'none'", self.headers["Content-Security-Policy"])
        with open(os.path.join(os.path.dirname(__file__), "..", "..", "apps", "control", "page.html"), "rb") as source:
            self.assertEqual(page, source.read())
        self.assertNotRegex(page.decode(), "https?://|src=|@import")  # no resources from elsewhere
        self.ok("gain -6", gain=-6)
        self.ok("next", filter="b.wav")
        self.refused("nonsense", "no such command")
        self.refused("gain 3\ngain 4", "gain 3")
        self.refused("load none.wav", "none.wav", "No such file")
        self.ir(np.ones((7, 2)), "new.wav")
        self.ok("load new.wav", filter="new.wav", filter_number=2)
        self.ok("status", taps=7, filters=["ir.wav", "new.wav"])
        self.assertEqual(self.request("POST", "/command", "x" * 9000)[0], 413)
        self.assertEqual(self.request("POST", "/command", "gain 3\0")[0], 400)
        self.quits(child)

    def test_library_is_loaded_for_the_page_alone(self):
        """It loads GnuTLS, which would delay every start."""
        needed = subprocess.run(["ldd", rig.PROGRAM], stdout=subprocess.PIPE).stdout
        self.assertIn(b"libsndfile", needed)
        self.assertNotIn(b"libmicrohttpd", needed)

    def test_response(self):
        """Against the transform of the taps, with the levels of the run."""
        taps = dyadic(self.random, (33, 2))
        self.ir(taps, "f.wav")
        child = self.begin("--gain", -6, "--dry", -12, irs=("f.wav",))
        answer = self.ok("response")["response"]
        f = np.geomspace(20, 20000, 128)
        np.testing.assert_allclose(answer["frequency"], f, rtol=1e-5)
        z = np.exp(-2j * np.pi * np.outer(f / 48000, np.arange(33))) @ taps.astype("f8")
        decibels = lambda x: 20 * np.log10(np.abs(x)).T
        # Six digits are printed.
        np.testing.assert_allclose(answer["filter"], decibels(z), rtol=1e-5, atol=1e-5)
        result = 10**(-6 / 20) * (z + 10**(-12 / 20))
        np.testing.assert_allclose(answer["result"], decibels(result), rtol=1e-5, atol=1e-4)
        self.ok("bypass on")
        np.testing.assert_allclose(self.ok("response")["response"]["result"], 0, atol=1e-6)
        self.ok("mute on")
        self.assertEqual(set(self.ok("response")["response"]["result"][0]), {None})
        self.quits(child)

    def test_refused_requests(self):
        """Pages of other sites, foreign names for this address, other paths and methods."""
        child = self.begin()
        own = "127.0.0.1:%d" % self.port
        for status, method, path, headers in (
                (403, "POST", "/command", {"Origin": "http://evil.example"}),
                (403, "POST", "/command", {"Origin": "https://" + own}),
                (403, "POST", "/command", {"Origin": "null"}),
                (403, "POST", "/command", {"Origin": "http://127.0.0.1:%d" % (self.port + 1)}),
                (403, "GET", "/", {"Host": "evil.example:%d" % self.port}),
                (403, "POST", "/command", {"Host": "evil.example"}), (403, "POST", "/command", {"Host": "127.0.0.1"}),
                (403, "POST", "/load?name=a.wav", {"Host": own + ".evil.example", "Origin": "http://" + own + ".evil.example"}),
                (404, "GET", "/etc/passwd", {}), (404, "POST", "//command", {}), (404, "GET", "/../../x", {}),
                (405, "GET", "/command", {}), (405, "POST", "/", {}), (405, "DELETE", "/", {}), (405, "PUT", "/load?name=a.wav", {})):
            with self.subTest(path=path, headers=headers):
                self.assertEqual(self.request(method, path, "mute on" if method == "POST" else None, **headers)[0], status)
        for headers in ({"Origin": "http://" + own}, {"Host": "localhost:%d" % self.port, "Origin": "http://localhost:%d" % self.port},
                        {"Host": "[::1]:%d" % self.port}):
            self.assertEqual(self.request("POST", "/command", "status", **headers)[0], 200)
        with socket.create_connection(("127.0.0.1", self.port)) as old:
            old.sendall(b"GET / HTTP/1.0\r\n\r\n")
            self.assertIn(b" 400 ", old.recv(65536).split(b"\r\n")[0])
        self.ok("status", mute=False)
        if os.path.exists("/proc/net/if_inet6"):
            other = self.start("--ir", "ir.wav", *DEVICES, "--web", "::1:%d" % free_port(), "--duration", 0.01)
            self.assertRegex(self.ends(other)[1], r"http://\[::1\]:[0-9]+/\n")
        self.fails_live("--ir", "ir.wav", *DEVICES, "--web", self.port, says=["--web %d: cannot receive" % self.port, "in use"])
        self.fails_live("--measure", "m.wav", "--web", self.port, rc=2, says="--web")
        for own in ("localhost:%d", "[::1]:%d")[:1 + os.path.exists("/proc/net/if_inet6")]:
            other = self.start("--ir", "ir.wav", *DEVICES, "--web", own % free_port(), "--duration", 0.01)
            self.assertRegex(self.ends(other)[1], "http://" + re.escape(own[:-2]) + "[0-9]+/\n")  # without a token
        for bad in ("0", "65536", "host:80", "1.2.3.4", "1.2.3.4:", ":80", "[]:80", "[:80", "[127.0.0.1]:80", "[::1", "localhost",
                    "localhost.:80", "local:80"):
            self.fails_live("--ir", "ir.wav", *DEVICES, "--web", bad, rc=2, says="--web " + bad)
        self.quits(child)

    def test_port_80(self):
        """Browsers leave it out of Host and Origin."""
        with socket.socket() as free:
            free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                free.bind(("127.0.0.1", 80))
            except OSError:
                self.skipTest("port 80 cannot be used")
        self.port = 80
        child = self.begin()
        for host, status in (("127.0.0.1", 200), ("localhost", 200), ("127.0.0.1:80", 200), ("127.0.0.1:81", 403), ("127.0.0.2", 403)):
            self.assertEqual(self.request("POST", "/command", "status", Host=host, Origin="http://" + host)[0], status)
        self.quits(child)

    def test_token(self):
        """An address that other machines reach answers nothing without the token, under any name."""
        child = self.begin(address="0.0.0.0:%d" % self.port)
        self.assertRegex(self.token, "^[0-9a-f]{32}$")
        wrong = self.token[:-1] + ("0" if self.token[-1] != "0" else "1")
        for path in ("/", "/command", "/load?name=a.wav", "/none"):
            method = "GET" if path == "/" else "POST"
            for status, token in ((401, None), (403, ""), (403, wrong), (403, self.token + "0"), (403, self.token[:-1])):
                query = path if token is None else path + ("&" if "?" in path else "?") + "token=" + token
                self.assertEqual(self.request(method, query, "mute on" if path != "/" else None)[0], status, query)
        self.assertEqual(self.request("GET", self.with_token("/"))[0], 200)
        self.assertEqual(self.request("GET", self.with_token("/"), Host="studio.local:%d" % self.port)[0], 200)
        self.assertEqual(self.request("POST", self.with_token("/command"), "mute on", Origin="http://evil.example")[0], 403)
        first = self.token
        self.ok("status", mute=False)
        self.quits(child)
        self.begin(address="0.0.0.0:%d" % self.port)
        self.assertNotEqual(self.token, first)

    def test_uploads(self):
        child = self.begin()
        whole = rig.wav_bytes(np.ones((5, 2), "f4"), bits=32)
        status, body = self.upload("my hall + church.wav", whole)
        self.assertEqual(status, 200)
        answer = schemas.load(body)
        self.assertTrue(answer["ok"], answer)
        self.assertRegex(answer["filter"], r"^%s/tmp/partita-\w{6}/my hall \+ church\.wav$" % re.escape(self.folder))
        self.assertEqual(self.ok("status")["taps"], 5)
        for data, says in ((b"", "a.wav"), (b"RIFF", "a.wav"), (whole[:40], "a.wav"), (self.random.bytes(5000), "a.wav"),
                           (rig.wav_bytes(np.ones((101, 2), "f4"), bits=32), "--max-taps"),
                           (rig.wav_bytes(np.ones((5, 3), "f4"), bits=32), "3 channels"),
                           (whole[:4] + b"\xff" * 40 + whole[44:], "a.wav")):
            status, body = self.upload("a.wav", data)
            self.assertEqual(status, 200)
            self.assertIn(says, schemas.load(body)["error"])
        for name in ("", "a", ".wav", "a.conf", "../a.wav", "/etc/a.wav", "a\nb.wav", "x" * 200 + ".wav", ".a.wav"):
            self.assertEqual(self.upload(name, whole)[0], 400, name)
        self.assertEqual(self.request("POST", "/load", whole)[0], 400)
        self.assertEqual(self.ok("status")["taps"], 5)
        self.ok("reload", filter=answer["filter"])
        self.assertEqual(os.listdir("tmp"), [answer["filter"].split("/")[-2]])  # the one that plays
        os.rename("tmp", "away")
        self.assertEqual(self.upload("a.wav", whole)[0], 507)
        os.rename("away", "tmp")
        answer = schemas.load(self.upload("b.wav", whole)[1])
        self.assertEqual(os.listdir("tmp"), [answer["filter"].split("/")[-2]])  # the next one replaces it
        # A client that goes away in the middle, and one that announces more than there may be.
        with socket.create_connection(("127.0.0.1", self.port)) as half:
            half.sendall(b"POST /load?name=a.wav HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Length: 9999\r\n\r\nRIFF" % self.port)
            self.wait_for(lambda: len(os.listdir("tmp")) == 2)
        self.wait_for(lambda: len(os.listdir("tmp")) == 1)
        with socket.create_connection(("127.0.0.1", self.port)) as large:
            large.sendall(b"POST /load?name=a.wav HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Length: 99999999999\r\n\r\n" % self.port)
            self.assertIn(b" 413 ", large.recv(65536).split(b"\r\n")[0])
        self.quits(child)
        self.assertEqual(os.listdir("tmp"), [])

    def test_many_connections(self):
        """More than are served wait; none stops the program, and it ends while they are open."""
        child = self.begin()
        connections = [http.client.HTTPConnection("127.0.0.1", self.port, timeout=60) for _ in range(16)]
        for i, connection in enumerate(connections):
            self.ok_on = self.ask("gain -%d" % i, connection)
            self.assertEqual(self.ok_on["gain"], -i)
        idle = [socket.create_connection(("127.0.0.1", self.port)) for _ in range(8)]
        for i, half in enumerate(idle):
            half.sendall([b"", b"GET / HT", b"POST /command HTTP/1.1\r\nContent-Length: 9\r\n", b"\0" * 100][i % 4])
        failures = []

        def many(k):
            for i in range(20):
                with contextlib.suppress(ConnectionError):
                    if not self.ask("input-gain %d" % (k * 20 + i))["ok"]:
                        failures.append(k)

        threads = [threading.Thread(target=many, args=(k,)) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        self.ok("status", state="running")
        begin = time.monotonic()
        self.ask("quit", connections[0])
        self.ends(child)
        self.assertLess(time.monotonic() - begin, 20 * rig_live.SLOWER)
        for connection in connections:
            connection.close()
        for half in idle:
            half.close()

    def test_ends_while_a_file_is_read(self):
        """Who waits for the outcome is told that there is none."""
        child = self.begin()
        big = rig.wav_bytes(np.zeros((3000000, 2), "f4"), bits=32)
        answers = []
        thread = threading.Thread(target=lambda: answers.append(self.upload("big.wav", big)))
        thread.start()
        self.wait_for(lambda: answers or any(os.path.getsize(p) == len(big) for p in glob.glob("tmp/*/big.wav")))
        child.send_signal(2)
        self.ends(child)
        thread.join()
        self.assertEqual(answers[0][0], 200)
        self.assertFalse(json.loads(answers[0][1])["ok"])
        self.assertEqual(os.listdir("tmp"), [])

    def test_waiting(self):
        os.rename(".asoundrc", "later")
        child = self.start("--ir", "ir.wav", *DEVICES, "--web", self.port, "--retry")
        self.assertIn(b"http://127.0.0.1:%d/" % self.port, child.stderr.readline())
        self.assertIn(b"waiting for it", child.stderr.readline())
        self.ok("status", state="waiting")
        self.refused("response", "response: is not possible while the program waits")
        os.rename("later", ".asoundrc")
        self.wait_for(lambda: self.ok("status")["state"] == "running")
        self.quits(child)

    def test_audio_thread(self):
        """Nothing allocates, locks or calls the system on it while the page is served."""
        if not WATCH:
            self.skipTest("needs gcc and the C library of GNU, without a sanitizer")
        self.alsa(dyadic(self.random, (100000, 2)))
        child = self.begin(env={"LD_PRELOAD": WATCH, "WATCHED_AUDIO": "watched"})
        self.wait_for(lambda: os.path.exists("watched"))
        self.request("GET", "/")
        for line in ("next", "gain -3", "response", "status", "load ./b.wav", "bypass toggle"):
            self.ok(line)
        self.assertEqual(self.upload("a.wav", rig.wav_bytes(np.ones((5, 2), "f4"), bits=32))[0], 200)
        self.quits(child)


class Browser(Web):
    """The page in Chromium, steered by the protocol of WebDriver."""

    def setUp(self):
        if not shutil.which("chromedriver") or not shutil.which("chromium"):
            self.skipTest("chromium and chromium-driver are not installed")
        super().setUp()
        self.driver_port = free_port()
        driver = subprocess.Popen(["chromedriver", "--port=%d" % self.driver_port], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, env={**os.environ, "HOME": self.folder})
        self.children.append(driver)
        self.wait_for(lambda: socket.socket().connect_ex(("127.0.0.1", self.driver_port)) == 0)
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=900,1100",
                     "--user-data-dir=" + self.folder + "/profile"]
        options = {"capabilities": {"alwaysMatch": {"goog:chromeOptions": {"args": arguments}, "goog:loggingPrefs": {"browser": "ALL"}}}}
        self.session = "/session/" + self.drive("POST", "/session", options)["sessionId"]

    def tearDown(self):
        if getattr(self, "session", None):
            with contextlib.suppress(OSError):
                self.drive("DELETE", self.session)
        super().tearDown()

    def drive(self, method, path, body=None):
        request = urllib.request.Request("http://127.0.0.1:%d%s" % (self.driver_port, path), method=method,
                                         data=json.dumps(body).encode() if method == "POST" else None)
        with urllib.request.urlopen(request, timeout=120 * rig_live.SLOWER) as answer:
            return json.load(answer)["value"]

    def on(self, selector, action, body=None):
        """Does something to the first element of a CSS selector, or an XPath that begins with /."""
        using = "xpath" if selector.startswith("/") else "css selector"
        element = self.drive("POST", self.session + "/element", {"using": using, "value": selector})
        return self.drive("POST" if body is not None else "GET", "%s/element/%s/%s" % (self.session, *element.values(), action), body)

    def click(self, selector):
        self.on(selector, "click", {})

    def script(self, text, *arguments):
        return self.drive("POST", self.session + "/execute/sync", {"script": text, "args": list(arguments)})

    def open(self):
        self.drive("POST", self.session + "/url", {"url": "http://127.0.0.1:%d%s" % (self.port, self.with_token("/"))})
        self.wait_for(lambda: "taps" in self.on("#state", "text"))

    def picture(self, name):
        data = base64.b64decode(self.drive("GET", self.session + "/screenshot"))
        if os.environ.get("PICTURES"):
            with open(os.path.join(os.environ["PICTURES"], name), "wb") as file:
                file.write(data)
        return data

    def ink(self, canvas):
        """How many points of a canvas have the two colours of curves."""
        return self.script("""const c = document.getElementById(arguments[0]), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data
            let blue = 0, red = 0
            for (let i = 0; i < d.length; i += 4) {
              if (d[i + 3] > 200 && d[i + 2] > 180 && d[i] < 60) blue++
              if (d[i + 3] > 200 && d[i] > 190 && d[i + 2] < 60) red++
            }
            return [blue, red]""", canvas)

    def scenes(self):
        n = np.arange(400)
        self.ir(np.exp(-n / 60)[:, None] * np.cos(n[:, None] * [0.3, 0.5]) * 0.3, "hall.wav")
        self.ir(np.sinc((n[:61, None] - 30) * [0.08, 0.08]) * 0.08, "low pass.wav")
        self.write("s.yaml", b"scenes: {hall: {filter: hall.wav, dry: -6}, bright room: {filter: low pass.wav, gain: -3},\n"
                   b"  night: {filter: hall.wav, gain: -20}}")
        self.alsa(dyadic(self.random, (100000, 2)))
        return self.begin("--scene", "s.yaml", irs=())

    def test_clicks(self):
        child = self.scenes()
        self.open()
        self.click("//button[text()='bright room']")
        self.wait_for(lambda: self.ok("status")["scene"] == "bright room")
        self.wait_for(lambda: self.on("//button[text()='bright room']", "attribute/aria-pressed") == "true")
        self.assertIn("low pass.wav", self.on("#state", "text"))
        self.click("#bypass")
        self.wait_for(lambda: self.ok("status")["bypass"])
        self.click("#bypass")
        self.click("#mute")
        self.wait_for(lambda: self.ok("status")["mute"] and not self.ok("status")["bypass"])
        self.click("#mute")
        # By the keyboard: an arrow is a step of half a decibel, the key for the start is off.
        self.on("#gain", "value", {"text": "\ue012"})
        self.wait_for(lambda: self.ok("status")["gain"] == -3.5)
        self.on("#wet", "value", {"text": "\ue011"})
        self.wait_for(lambda: self.ok("status")["wet"] is None)
        self.on("#wet", "value", {"text": "\ue014"})
        self.wait_for(lambda: self.ok("status")["wet"] == -59.5)
        self.on("#file", "value", {"text": os.path.abspath("hall.wav")})
        self.wait_for(lambda: self.ok("status")["filter"].endswith("/hall.wav"))
        self.assertEqual(self.on("#message", "text"), "")
        self.script("""const drop = new DataTransfer()
            drop.items.add(new File(['no sound'], 'bad.wav'))
            document.getElementById('drop').dispatchEvent(new DragEvent('drop', {dataTransfer: drop, bubbles: true}))""")
        self.wait_for(lambda: "bad.wav" in self.on("#message", "text"))
        self.click("//button[text()='hall']")
        self.wait_for(lambda: self.ok("status")["scene"] == "hall")
        self.wait_for(lambda: min(self.ink("response")) > 100 and self.ink("load")[0] > 10)
        self.assertIn("calls", self.on("#late", "text"))
        self.wait_for(lambda: self.script("return document.querySelectorAll('.meter').length") == 4)
        time.sleep(3)  # of load for the picture
        self.picture("live-page.png")
        # A phone: nothing is wider than the screen.
        self.drive("POST", self.session + "/window/rect", {"width": 500, "height": 900})
        self.drive("POST", self.session + "/goog/cdp/execute", {"cmd": "Emulation.setDeviceMetricsOverride", "params": {
            "width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}})
        self.assertLessEqual(self.script("return document.documentElement.scrollWidth"), 360)
        self.picture("live-phone.png")
        log = self.drive("POST", self.session + "/se/log", {"type": "browser"})
        self.assertEqual([entry for entry in log if entry["level"] == "SEVERE" and "favicon" not in entry["message"]], [])
        self.ok("quit")
        self.wait_for(lambda: "no connection" in self.on("#state", "text"))
        self.ends(child)

    def test_token(self):
        child = self.begin(address="0.0.0.0:%d" % self.port)
        self.open()
        self.click("//button[text()='b.wav']")
        self.wait_for(lambda: self.ok("status")["filter"] == "b.wav")
        self.on("#file", "value", {"text": os.path.abspath("ir.wav")})
        self.wait_for(lambda: self.ok("status")["filter"].endswith("/ir.wav"))
        self.quits(child)


WATCH = os.path.abspath(sys.argv.pop(2)) if len(sys.argv) > 2 else None

if __name__ == "__main__":
    rig.main()
