import { startSandbox } from '../../src/sandbox/start.ts';
import { ManualClock } from './manual-clock.ts';

// A process of its own: in the tests' process the memory of other tests counts too.
const sandbox = await startSandbox({
  clock: new ManualClock(),
  users: 1,
  days: 36_500,
  mealsPerDay: 10,
  since: '1927-01-01',
});
const [user] = sandbox.state.users.list(sandbox.teamId);
const response = await fetch(`${sandbox.url}/v2/summary/meal/${user?.id}?start_date=1900-01-01`, {
  headers: { 'x-service-api-key': sandbox.apiKey },
});
const before = process.memoryUsage().rss;
let bytes = 0;
let most = before;
for await (const piece of response.body ?? []) {
  bytes += piece.byteLength;
  most = Math.max(most, process.memoryUsage().rss);
}
await sandbox.stop();
process.stdout.write(JSON.stringify({ bytes, grown: most - before }));
