import { expect, test } from 'vitest';
import { followPulls } from '../../../src/history/backfill/follow.ts';
import { MEAL, RESOURCES, type HistoryResource } from '../../../src/history/resources.ts';
import { systemClock } from '../../../src/core/clock.ts';
import type { ServiceClient } from '../../../src/history/service/client.ts';

const [FIRST, SECOND] = ['00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000002'];

/** Follows two pulls of which each look shows those of a line; the last line is what all later looks show. */
function follow(...looks: readonly Readonly<Record<string, string>>[]) {
  return followOf([MEAL], looks);
}

function followOf(
  resources: readonly HistoryResource[],
  looks: readonly Readonly<Record<string, string>>[],
  shownAs = (said: string): object => ({ meal: { status: said } }),
) {
  let look = -1;
  const status = async () => {
    look = Math.min(look + 1, looks.length - 1);
    const shown = Object.entries(looks[look] ?? {});
    return {
      data: shown.map(([user_id, said]) => ({
        user_id,
        provider: { made_up: { pulled: shownAs(said) } },
      })),
    };
  };
  return followPulls(
    [FIRST, SECOND].flatMap((user) => resources.map((resource) => ({ user, provider: 'made_up', resource }))),
    {
      service: { pulls: { status } } as unknown as ServiceClient,
      clock: systemClock,
      signal: new AbortController().signal,
      pollMs: 1,
      patienceMs: 0,
      processed: new Set(['made_up']),
      ended: new Map(),
      onProgress: () => undefined,
    },
  );
}

const RUNNING = { [FIRST]: 'in_progress', [SECOND]: 'in_progress' };
const WITHOUT_SECOND = { [FIRST]: 'in_progress' };
const DONE = { [FIRST]: 'success', [SECOND]: 'success' };

test('a pull that one look does not show, as a page moved, is followed to its end', async () => {
  expect(await follow(RUNNING, RUNNING, RUNNING, WITHOUT_SECOND, RUNNING, WITHOUT_SECOND, DONE)).toEqual({});
});

test('a pull that is not shown any more is no longer waited for', async () => {
  const without = await follow(RUNNING, { [FIRST]: 'success' });
  expect(without).toEqual({
    [`${SECOND} made_up meal`]: { status: 'not_pulled', reason: expect.any(String) },
  });
});

test('each resource is followed to its own end', async () => {
  const resources = ['sleep', 'steps'].flatMap((name) => RESOURCES.get(name) ?? []);
  const looks = [RUNNING, { [FIRST]: 'success', [SECOND]: 'failure' }];
  const without = await followOf(resources, looks, (status) => ({
    sleep: { status: 'success' },
    steps: { status },
  }));
  expect(without).toEqual({ [`${SECOND} made_up steps`]: { status: 'failed', reason: expect.any(String) } });
});
