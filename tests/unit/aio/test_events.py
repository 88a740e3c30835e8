"""Notifications, and waits with a time limit."""

import asyncio

from kafscale.aio.events import Notifier, wait_at_most


def test_a_notification_wakes_all_waiters_whose_condition_holds():
    async def scenario():
        notifier, count, woken = Notifier(), 0, []

        async def wait_for_count(number):
            await notifier.wait_for(lambda: count >= number)
            woken.append(number)

        async with asyncio.TaskGroup() as tasks:
            for number in (1, 1, 2):
                tasks.create_task(wait_for_count(number))
            await asyncio.sleep(0)
            for expected in ([1, 1], [1, 1, 2]):
                count += 1
                notifier.notify()
                await asyncio.sleep(0)
                assert woken == expected

    asyncio.run(scenario())


def test_a_condition_that_holds_needs_no_notification():
    asyncio.run(Notifier().wait_for(lambda: True))


def test_a_notification_before_the_wait_is_not_missed():
    async def scenario():
        notifier = Notifier()
        event = notifier.next_event()
        notifier.notify()
        await event.wait()
        assert not notifier.next_event().is_set(), "the next notification has not come yet"

    asyncio.run(scenario())


def test_a_wait_ends_with_the_event_or_with_its_time_limit():
    async def scenario():
        event = asyncio.Event()
        await wait_at_most(0, event)
        assert not event.is_set()
        event.set()
        await wait_at_most(60, event)

    asyncio.run(scenario())
