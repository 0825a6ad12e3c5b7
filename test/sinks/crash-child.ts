// Writes to an archive and kills itself at one step of finishing a file; run by files-crash.long.test.ts.
// Arguments: folder, step or `open` (right after the last send), form of the files, number of the first event of each batch.
// Prints that number for each batch delivered, before it sends the next: then at the latest would a journal note it.
import { writeSync } from 'node:fs';
import { contractEvent } from '../../src/sinks/contract-events.ts';
import { parseOptions } from '../../src/sinks/files/config.ts';
import { FilesSink } from '../../src/sinks/files/sink.ts';
import { systemClock } from '../../src/core/clock.ts';

const [path = '', step = '', form = 'gzip', ...firsts] = process.argv.slice(2);
const die = (): void => void process.kill(process.pid, 'SIGKILL');
const quiet = (): void => undefined;
const context = { name: 'archive', clock: systemClock, log: { info: quiet, warn: quiet, error: quiet } };
const options = parseOptions({
  path,
  compress: form,
  rotate: { bytes: 1024 },
});
const sink = new FilesSink(options, context, { onStep: (now) => now === step && die() });
const { signal } = new AbortController();

const batch = (from: number) =>
  Array.from({ length: 10 }, (_, i) => ({ event: contractEvent(from + i), destination: null }));

await sink.open();
// Each batch but the first finds a full part, so that is finished while the batch is written.
let delivered = '';
for (const first of firsts) {
  writeSync(1, delivered);
  const results = await sink.send(batch(Number(first)), signal);
  if (results.every(({ status }) => status === 'delivered')) delivered = `${first}\n`;
}
if (step === 'open') die();
// Cursors are flushed before sinks are closed.
writeSync(1, delivered);
await sink.close(signal);
