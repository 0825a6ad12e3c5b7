import { warnOfLeftSpools } from '../privacy/erase/left-spools.ts';
import { checkLength } from '../privacy/erase/list-length.ts';
import { Follower } from '../privacy/erase/followers.ts';
import { runErasures, type RunningErasures, SETTLE_WAIT } from '../privacy/erase/running-erasures.ts';
import type { Started } from '../lib/parts.ts';
import type { DeliveryParts } from './delivery.ts';
import type { StoreParts } from './store.ts';
import type { Base } from './system.ts';

/** @throws MillraceError erasure_stale */
export async function makeErasures(
  base: Base,
  { store, journal, shared }: StoreParts,
  { dispatcher, sinks }: DeliveryParts,
): Promise<Started<RunningErasures>> {
  const { audit, meter, users, config } = base;
  await checkLength(users, store.checkpoints, config.erasure.path);
  const erasures = runErasures({
    ...base,
    store,
    journal: journal ?? shared,
    dispatcher,
    sinks,
    recent: {
      forget: (owned) => {
        meter.recent.forget(owned);
        meter.tail.forget();
        meter.deliveries.forget();
      },
    },
    noteErased: (ids) => audit.note({ who: 'receiver', action: 'erase', what: 'erasures', ids }),
  });
  // Stops after the sinks: what they flush may be of an erased user.
  const follower = shared === null ? null : follow(base, store, { dispatcher, sinks });
  // An erasure that was requested through the admin API may run before all parts have started.
  const stop = async (): Promise<void> => {
    await erasures.stop();
    await follower?.stop((await dispatcher.answered(AbortSignal.abort())).length === 0);
  };
  return { made: erasures, stop };
}

export async function startErasures(
  { config, proof, log }: Base,
  erasures: RunningErasures,
): Promise<Started<void>> {
  const noted = async (): Promise<readonly string[]> =>
    (await proof()).heads.archives().flatMap(({ spools }) => spools);
  await warnOfLeftSpools(config, noted, log);
  erasures.start();
  // Stops before any other part: an erasure in progress needs them.
  return { made: undefined, stop: () => erasures.stop() };
}

/** Other processes of a fleet, which add to the same list of erased users, wait for this one when they erase. */
function follow(
  { config, users, log }: Base,
  store: StoreParts['store'],
  { dispatcher, sinks }: Pick<DeliveryParts, 'dispatcher' | 'sinks'>,
): Follower {
  return Follower.start({
    folder: config.erasure.path,
    users,
    log,
    settle: async () => {
      const late = await dispatcher.answered(AbortSignal.timeout(SETTLE_WAIT));
      if (late.length > 0) throw new Error(`${late.join(', ')} has not answered a batch`);
      await Promise.all(
        sinks.names.map(async (name) => sinks.get(name)?.settle?.(() => Promise.resolve(true))),
      );
      await store.settled();
    },
  });
}
