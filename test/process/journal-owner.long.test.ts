import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { FIRST_SEGMENT } from '../support/journal-files.ts';
import { millrace, millraceProcess, writeConfig } from '../support/millrace.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { Receiver } from '../support/receiver.ts';
import { lacksProgram, skipped } from '../support/requirements.ts';
import { postSigned } from '../support/signed-events.ts';

const lack = lacksProgram('mkfifo');

test('fault 08: a second receiver on one journal exits at once and names the first', async () => {
  const config = writeConfig(await temporaryFolder());
  const first = await ReceiverProcess.start(config);
  const second = await millraceProcess(['serve', '--config', config]);
  expect(second).toMatchObject({ code: 1, stdout: '' });
  expect(second.stderr).toContain(`millrace: Journal is in use by another process: `);
  expect(second.stderr).toContain(`is held by process ${first.pid}`);
  expect(await postSigned(first.url)).toMatchObject({ status: 202 });
});

test('fault 08: a killed receiver leaves no lock, and its name is not given for that of the next', async () => {
  const config = writeConfig(await temporaryFolder());
  await (await ReceiverProcess.start(config)).kill('SIGKILL');
  const next = await ReceiverProcess.start(config);
  expect(await postSigned(next.url)).toMatchObject({ status: 202 });
  expect((await millraceProcess(['serve', '--config', config])).stderr).toContain(`process ${next.pid}`);
});

test('what another process holds ends a receiver with an exit code on which systemd starts it again', async () => {
  const receipts = { path: join(await temporaryFolder(), 'receipts'), origin: 'example.com/made-up' };
  const config = async (): Promise<string> => writeConfig(await temporaryFolder(), { receipts });
  const first = await ReceiverProcess.start(await config());
  const second = await config();
  const refused = await millraceProcess(['serve', '--config', second]);
  expect(refused.stderr).toContain('The log of receipts is in use by another process');
  const unit = readFileSync(new URL('../../deploy/systemd/millrace.service', import.meta.url), 'utf8');
  const [, forGood] = /^RestartPreventExitStatus=(.*)$/m.exec(unit) ?? [];
  expect(forGood?.split(' ')).not.toContain(String(refused.code));
  expect(refused.code).toBe(1);
  await first.kill('SIGTERM');
  await ReceiverProcess.start(second);
});

for (const name of ['journal.db', 'journal.db-wal', FIRST_SEGMENT, 'owner.json', 'owner.json.tmp']) {
  test(`fault 30: a symbolic link in the place of ${name} is not followed`, async () => {
    const folder = await temporaryFolder();
    const config = writeConfig(folder);
    const target = join(folder, 'elsewhere');
    writeFileSync(target, 'as it was');
    mkdirSync(join(folder, 'journal'));
    symlinkSync(target, join(folder, 'journal', name));
    const text = await said(config, name);
    expect(text).toMatch(/^1 /);
    expect(text).toContain(saying(name));
    expect(execFileSync('cat', [target]).toString()).toBe('as it was');
  });

  test.skipIf(lack !== null)(
    `fault 30: a FIFO in the place of ${name} is not waited for${skipped(lack)}`,
    async () => {
      const folder = await temporaryFolder();
      const config = writeConfig(folder);
      mkdirSync(join(folder, 'journal'));
      execFileSync('mkfifo', [join(folder, 'journal', name)]);
      const text = await said(config, name);
      expect(text).toMatch(/^1 /);
      expect(text).toContain(saying(name));
    },
  );
}

/** What a start says: of a file of the journal that is not plain, that; of the owner's note, which is written anew, what it holds. */
function saying(name: string): string {
  return name.startsWith('owner') ? 'is held by process ' : `${name} is not a plain file`;
}

async function said(config: string, name: string): Promise<string> {
  if (name.startsWith('owner')) await Receiver.start(config);
  const { code, stderr } = await millrace(['serve', '--config', config]);
  return `${code} ${stderr}`;
}
