// Run by tests; kills itself. `keys FOLDER MASTER`: makes keys, prints them, and is gone before anything uses them.
// `records FOLDER MASTER ARCHIVE COUNT`: appends so many records to a sealed archive, prints it, and is gone.
import { writeSync } from 'node:fs';
import { systemClock } from '../../../src/core/clock.ts';
import { KeyStore } from '../../../src/privacy/seal/key-store.ts';
import { contractEvent } from '../../../src/sinks/contract-events.ts';
import { parseOptions } from '../../../src/sinks/files/config.ts';
import { FilesSink } from '../../../src/sinks/files/sink.ts';
import { keysOf, owner } from './support.ts';

const [what = '', folder = '', master = '', archive = '', count = '0'] = process.argv.slice(2);
const die = (): void => void process.kill(process.pid, 'SIGKILL');
const quiet = (): void => undefined;

if (what === 'keys') {
  const store = await KeyStore.open(folder, Buffer.from(master, 'hex'));
  const keys = await keysOf(store, [owner(0), owner(1), owner(2)]);
  writeSync(1, JSON.stringify(keys.map(({ id, key }) => ({ id, key: key.toString('hex') }))));
  die();
} else {
  const options = parseOptions({ path: archive, encrypt: { store: folder, masterKey: master } });
  const context = { name: 'archive', clock: systemClock, log: { info: quiet, warn: quiet, error: quiet } };
  const sink = new FilesSink(options, context);
  await sink.open();
  const batch = Array.from({ length: Number(count) }, (_, n) => ({
    event: contractEvent(n + 1),
    destination: null,
  }));
  const results = await sink.send(batch, new AbortController().signal);
  writeSync(1, JSON.stringify(results.map(({ status }) => status)));
  die();
}
