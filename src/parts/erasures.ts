import { warnOfLeftSpools } from '../erase/left-spools.ts';
import { runErasures } from '../erase/running-erasures.ts';
import type { Stop } from '../lib/parts.ts';
import type { System } from './system.ts';

export function makeErasures(system: System): Stop {
  const { audit, meter } = system;
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
  // It may run before the last part has started: who asks through the admin listener does not wait for that.
  return () => system.erasures.stop();
}

export async function startErasures({ erasures, config, log }: System): Promise<Stop> {
  await warnOfLeftSpools(config, log);
  erasures.start();
  // Again before anything else stops: what one that runs clears must still be open.
  return () => erasures.stop();
}
