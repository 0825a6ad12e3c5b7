import { warnOfLeftSpools } from '../erase/left-spools.ts';
import { checkLength } from '../erase/list-length.ts';
import { Follower } from '../erase/followers.ts';
import { runErasures, SETTLE_WAIT } from '../erase/running-erasures.ts';
import type { Stop } from '../lib/parts.ts';
import type { System } from './system.ts';

/** @throws MillraceError erasure_stale */
export async function makeErasures(system: System): Promise<Stop> {
  const { audit, meter, users, store, config } = system;
  await checkLength(users, store.checkpoints, config.erasure.path);
  system.erasures = runErasures({
    ...system,
    journal: system.journal ?? system.shared,
    recent: {
      forget: (owned) => {
        meter.recent.forget(owned);
        meter.tail.forget();
        meter.deliveries.forget();
      },
    },
    noteErased: (ids) => audit.note({ who: 'receiver', action: 'erase', what: 'erasures', ids }),
  });
  // Until the sinks have stopped: what they flush may be an erased user's.
  const follower = system.shared === null ? null : follow(system);
  // It may run before the last part has started: who asks through the admin listener does not wait for that.
  return async () => {
    await system.erasures.stop();
    await follower?.stop((await system.dispatcher.answered(AbortSignal.abort())).length === 0);
  };
}

export async function startErasures({ erasures, config, proof, log }: System): Promise<Stop> {
  const noted = async (): Promise<readonly string[]> =>
    (await proof()).heads.archives().flatMap(({ spools }) => spools);
  await warnOfLeftSpools(config, noted, log);
  erasures.start();
  // Again before anything else stops: what one that runs clears must still be open.
  return () => erasures.stop();
}

/** With a list that other processes add to: they wait for this one when they erase. */
function follow({ config, users, store, dispatcher, sinks, log }: System): Follower {
  return Follower.start({
    folder: config.erasure.path,
    users,
    log,
    settle: async () => {
      const late = await dispatcher.answered(AbortSignal.timeout(SETTLE_WAIT));
      if (late.length > 0) throw new Error(`${late.join(', ')} has not answered a batch`);
      await Promise.all(sinks.names.map((name) => sinks.settle(name, () => Promise.resolve(true))));
      await store.settled();
    },
  });
}
