import { dryRun } from '../../src/replay/dry-run.ts';
import { listPath } from '../../src/replay/list.ts';
import { listing, readerOf } from './support.ts';

// A process of its own: in the tests' process the memory of other tests counts too. Reads the archive it is given, takes every
// event, and says how far its memory grew.
const reader = readerOf();
const before = process.memoryUsage().rss;
let most = before;
const { counts } = await dryRun(
  listPath(process.argv[2] ?? '', listing()),
  {
    read: (unit, from, signal) => {
      if (unit.kind !== 'file') throw new Error(`not a file: ${unit.kind}`);
      return reader.read(unit, from, signal);
    },
    destinations: {
      wants: () => {
        most = Math.max(most, process.memoryUsage().rss);
        return true;
      },
      targetsFor: () => [],
    },
    pseudonymiser: (event) => event,
    onProblem: ({ reason }) => {
      throw new Error(reason);
    },
  },
  new AbortController().signal,
);
process.stdout.write(JSON.stringify({ selected: counts.selected, grown: most - before }));
