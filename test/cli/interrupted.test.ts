import { join } from 'node:path';
import { expect, test } from 'vitest';
import { deliver, filesSink, signal } from '../sinks/support.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, writeConfig } from '../support/millrace.ts';

test('a command that is stopped says so in a line, without a stack', async () => {
  const folder = await temporaryFolder();
  const archive = join(folder, 'archive');
  const config = writeConfig(folder, { sinks: { archive: { type: 'files', path: archive } } });
  const { sink } = filesSink(archive);
  await sink.open();
  await sink.send(deliver(1, 5), signal);
  await sink.close(signal);
  for (const args of [
    ['archive', 'verify', archive],
    ['export', archive, '--out', join(folder, 'out')],
    ['erase', 'made-up-user', '--now', '--config', config],
  ]) {
    const { code, stderr } = await millrace(args, { signal: AbortSignal.abort() });
    const said = `${args.join(' ')}: ${code}: ${stderr}`;
    expect([1, 3], said).toContain(code);
    expect(said).not.toMatch(/^\s+at /m);
  }
});
