import { startSandbox } from '../../src/sandbox/start.ts';
import { ManualClock } from '../support/manual-clock.ts';

/** Bytes between two looks. */
const EVERY = 16e6;

/** Bytes that something still needs. What waits to be collected says more of the machine than of the program. */
function live(): number {
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

// A process of its own: in the tests' process the memory of other tests counts too.
const sandbox = await startSandbox({
  clock: new ManualClock(),
  users: 1,
  days: Number(process.argv[2]),
  mealsPerDay: 10,
  since: '1927-01-01',
});
const [user] = sandbox.state.users.list(sandbox.teamId);
const response = await fetch(`${sandbox.url}/v2/summary/meal/${user?.id}?start_date=1900-01-01`, {
  headers: { 'x-service-api-key': sandbox.apiKey },
});
const before = live();
let bytes = 0;
let looked = 0;
let most = before;
for await (const piece of response.body ?? []) {
  bytes += piece.byteLength;
  if (bytes - looked < EVERY) continue;
  looked = bytes;
  most = Math.max(most, live());
}
await sandbox.stop();
process.stdout.write(JSON.stringify({ bytes, grown: most - before }));
