import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { segmentsOf } from '../support/journal-files.ts';
import { writeConfig } from '../support/millrace.ts';
import { Receiver } from '../support/receiver.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { postSigned } from '../support/signed-events.ts';

test('fault 4: a receiver starts on a damaged journal, names the record and delivers the rest', async () => {
  const folder = await temporaryFolder();
  // It holds what it gets until the gate is there: the events wait in the journal.
  const gated = { type: new URL('../process/gated-sink.ts', import.meta.url).pathname, folder };
  const config = writeConfig(folder, {
    sinks: { gated },
    routes: [{ match: '*', to: ['gated'] }],
  });
  const first = await ReceiverProcess.start(config);
  const events = Array.from({ length: 12 }, (_, n) => madeUpEvent(n));
  for (const { id, body } of events) expect((await postSigned(first.url, body, { id })).status).toBe(202);
  await first.kill('SIGKILL');
  const [name = ''] = segmentsOf(join(folder, 'journal'));
  const file = readFileSync(name);
  const bad = events[5] as { id: string; body: Buffer };
  const at = file.indexOf(bad.body) + 20;
  file[at] = (file[at] as number) ^ 1;
  writeFileSync(name, file);
  writeFileSync(join(folder, 'gate'), '');
  const second = await Receiver.start(config);
  await second.drained();
  await second.kill('SIGTERM');
  expect(second.logLines()).toContainEqual(
    expect.objectContaining({ msg: 'a journal record is damaged', seq: 6, id: bad.id }),
  );
  const delivered = readFileSync(join(folder, 'delivered'), 'utf8').trim().split('\n');
  expect(delivered).toEqual(events.map(({ id }) => id).filter((id) => id !== bad.id));
});
