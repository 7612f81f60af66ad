"""The sockets through the real protocol: who may listen, what comes at once, and what follows."""

from __future__ import annotations

import asyncio

import pytest
from channels.routing import URLRouter
from django.contrib.auth.models import AnonymousUser

from tests.webapp.jobs.scene import launch, queue
from tests.webapp.live.communicator import Socket
from webapp.jobs.models import Job
from webapp.live import feed
from webapp.live.hub import QUEUE, hub
from webapp.live.messages import Line, LogMessage, PointsMessage, SeriesPart
from webapp.live.routing import sockets

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def job(team, alice, seed_spec):
    created = queue(team, alice, seed_spec)
    launch(created, "alpha")
    return created


@pytest.fixture
def wire(redis_server, settings):
    settings.REDIS_URL = redis_server.url
    client = redis_server.client()
    yield client
    client.close()


def socket(user, path):
    return Socket(URLRouter(sockets), path, user)


async def opened(user, path):
    communicator = socket(user, path)
    assert await communicator.connect()
    return communicator


async def until(communicator, kind):
    """The next message of that kind."""
    while True:
        message = await communicator.receive()
        if message["type"] == kind:
            return message


def points(job, start, values, name="loss"):
    steps = list(range(start, start + len(values)))
    part = SeriesPart(name=name, replica=None, start=start, steps=steps, times=[1.0] * len(steps), values=values)
    return feed.News(job.pk, job.team_id, points=PointsMessage(job=job.pk, series=[part]))


def lines(job, first, count):
    made = [
        Line(id=n, process="worker-0", stream="stdout", time=1.0, text="x" * 50) for n in range(first, first + count)
    ]
    return feed.News(job.pk, job.team_id, lines=LogMessage(job=job.pk, lines=made))


@pytest.mark.parametrize("path", ["/ws/jobs/{job}/", "/ws/t/vision/"])
async def test_it_refuses_strangers_and_anybody(wire, job, charlie, path):
    for user in (AnonymousUser(), charlie):
        communicator = socket(user, path.format(job=job.pk))
        assert await communicator.connect() is False
    assert not hub()._tasks


@pytest.mark.parametrize("path", ["/ws/jobs/{job}/", f"/ws/jobs/{10**24}/", "/ws/nowhere/", "/"])
async def test_it_answers_404_where_the_server_can(wire, job, charlie, path):
    communicator = socket(charlie, path.format(job=job.pk))
    communicator.scope["extensions"] = {"websocket.http.response": {}}
    await communicator.send_input({"type": "websocket.connect"})
    answer = await communicator.receive_output(timeout=10)
    assert (answer["type"], answer["status"]) == ("websocket.http.response.start", 404)


async def test_it_sends_the_state_at_once_and_points_and_lines_as_they_come(wire, job, bob):
    page = await opened(bob, f"/ws/jobs/{job.pk}/")
    state = await page.receive()
    assert (state["type"], state["id"], state["state"]) == ("job", job.pk, "starting")
    feed.tell(wire, [points(job, 0, [1.0, float("nan")])])
    told = await until(page, "points")
    assert told["job"] == job.pk
    assert told["series"][0]["values"] == [1.0, "NaN"]
    feed.tell(wire, [lines(job, 5, 2)])
    assert [line["id"] for line in (await until(page, "log"))["lines"]] == [5, 6]
    await page.disconnect()


async def test_it_sends_the_changed_job_and_row(wire, job, bob):
    page = await opened(bob, f"/ws/jobs/{job.pk}/")
    table = await opened(bob, "/ws/t/vision/")
    assert (await until(page, "job"))["step"] == 0
    assert (await until(table, "row"))["id"] == job.pk
    for step in (3, 7):
        await Job.objects.filter(pk=job.pk).aupdate(step=step)
        feed.tell(wire, [feed.News(job.pk, job.team_id, changed=True)])
    while (await until(page, "job"))["step"] != 7:
        pass
    while (await until(table, "row"))["step"] != 7:
        pass
    await page.disconnect()
    await table.disconnect()


async def test_it_hears_the_control_planes_own_notices(wire, job, bob):
    from webapp.jobs import notices
    from webapp.live.database import in_database

    page = await opened(bob, f"/ws/jobs/{job.pk}/")
    await until(page, "job")
    await Job.objects.filter(pk=job.pk).aupdate(reason="waiting for two devices")
    await in_database(notices.changed, [job.pk])
    assert (await until(page, "job"))["reason"] == "waiting for two devices"
    await page.disconnect()


async def test_it_adds_points_of_chosen_jobs_to_a_teams_socket(wire, job, bob, team, alice, charlie, seed_spec):
    from webapp.live.database import in_database
    from webapp.teams.models import Team

    speech = await Team.objects.aget(slug="speech")
    foreign = await in_database(queue, speech, charlie, seed_spec)
    unasked = await in_database(queue, team, alice, seed_spec)
    page = await opened(bob, f"/ws/t/vision/?points={job.pk},{foreign.pk},x,99999")
    feed.tell(wire, [points(foreign, 0, [1.0]), points(unasked, 0, [2.0]), points(job, 0, [3.0])])
    told = await until(page, "points")
    assert (told["job"], told["series"][0]["values"]) == (job.pk, [3.0])
    assert await page.receive_nothing(0.3)
    await page.disconnect()


async def test_it_sends_at_most_twenty_frames_a_second_and_every_point(wire, job, bob):
    page = await opened(bob, f"/ws/jobs/{job.pk}/")
    await until(page, "job")
    loop = asyncio.get_running_loop()
    begun = loop.time()
    got, frames = [], 0
    for start in range(200):
        feed.tell(wire, [points(job, start, [float(start)])])
        await asyncio.sleep(0.002)
    while len(got) < 200:
        told = await until(page, "points")
        frames += 1
        got += [value for part in told["series"] for value in part["values"]]
    assert got == [float(start) for start in range(200)]
    assert frames <= 20 * (loop.time() - begun) + 2
    await page.disconnect()


async def test_it_tells_a_slow_socket_of_the_gap(wire, job, bob):
    subscription = None
    page = await opened(bob, f"/ws/jobs/{job.pk}/")
    await until(page, "job")
    (subscription,) = {each for listeners in hub()._topics.values() for each in listeners}
    for index in range(QUEUE + 1):
        hub()._spread({"kind": "news", "job": str(job.pk), "team": "1", "points": points_text(job, index)})
    assert len(subscription._items) == 1
    assert (await until(page, "gap")) == {"type": "gap"}
    assert (await until(page, "points"))["series"][0]["start"] == QUEUE
    await page.disconnect()


def points_text(job, start):
    return points(job, start, [1.0]).points.model_dump_json()


async def test_it_tells_of_a_gap_instead_of_a_flood(wire, job, bob):
    page = await opened(bob, f"/ws/jobs/{job.pk}/")
    feed.tell(wire, [lines(job, 0, feed.MOST_LINES + 1)])
    await until(page, "gap")
    await page.disconnect()


async def test_it_comes_back_after_redis_and_says_that_something_may_be_missing(wire, job, bob, redis_server):
    page = await opened(bob, f"/ws/jobs/{job.pk}/")
    feed.tell(wire, [points(job, 0, [1.0])])
    await until(page, "points")
    redis_server.kill()
    await asyncio.to_thread(redis_server.start)
    await until(page, "gap")
    feed.tell(redis_server.client(), [points(job, 1, [2.0])])
    assert (await until(page, "points"))["series"][0]["start"] == 1
    await page.disconnect()


async def test_it_shows_the_state_while_redis_is_away(wire, job, bob, redis_server):
    redis_server.kill()
    page = await opened(bob, f"/ws/jobs/{job.pk}/")
    assert (await until(page, "job"))["id"] == job.pk
    await page.disconnect()


async def test_it_beats(wire, job, bob, monkeypatch):
    monkeypatch.setattr("webapp.live.consumers.BEAT_SECONDS", 0.05)
    page = await opened(bob, f"/ws/jobs/{job.pk}/")
    assert (await until(page, "beat"))["time"] > 1.7e9
    await page.disconnect()


async def test_it_closes_when_the_visitor_leaves_the_team(wire, job, bob, team, monkeypatch):
    monkeypatch.setattr("webapp.live.consumers.CHECK_SECONDS", 0.0)
    page = await opened(bob, f"/ws/jobs/{job.pk}/")
    await until(page, "job")
    await team.memberships.filter(user=bob).adelete()
    feed.tell(wire, [points(job, 0, [1.0])])
    while True:
        output = await page.receive_output(timeout=10)
        if output["type"] == "websocket.close":
            break
    assert output["code"] == 4404
    await page.disconnect()


async def test_it_reads_redis_once_for_all_sockets_and_stops_with_the_last(wire, job, bob):
    pages = [await opened(bob, f"/ws/jobs/{job.pk}/") for _ in range(5)]
    reader = hub()
    assert len(reader._tasks) == 2
    for page in pages:
        await page.disconnect()
    assert reader._tasks == []
    assert reader._topics == {}
