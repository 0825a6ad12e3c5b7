import { spawnSync } from 'node:child_process';
import { chownSync, globSync, lstatSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { MAIN, millraceProcess, writeConfig } from '../support/millrace.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { firstLack, lacksRoot, skipped, type Lack } from '../support/requirements.ts';
import { postSigned } from '../support/signed-events.ts';

/** The receiver's user: a number that no name is known of. */
const OTHER = 54_321;

/** A checkout below /root can be read by root only. */
function lacksOpenCheckout(): Lack {
  const trial = spawnSync(process.execPath, [MAIN, '--version'], { uid: OTHER, gid: OTHER, stdio: 'ignore' });
  return trial.status === 0 ? null : 'needs a checkout that other users can read';
}

const lack = firstLack(lacksRoot(), process.getuid?.() === 0 ? lacksOpenCheckout() : null);

const below = (folder: string): string[] => [folder, ...globSync(join(folder, '**/{*,.*}'))];
const ownersOf = (folder: string): Record<string, number> =>
  Object.fromEntries(below(folder).map((path) => [path, lstatSync(path).uid]));

test.skipIf(lack !== null)(
  `what root's commands create belongs to the receiver's user${skipped(lack)}`,
  async () => {
    const folder = await temporaryFolder();
    const sinks = { archive: { type: 'files', path: join(folder, 'archive') } };
    const gone = { type: 'files', path: '/dev/null/nowhere', required: false };
    const config = writeConfig(folder, { sinks: { ...sinks, gone }, envelope: { teams: [] } });
    const receiver = await ReceiverProcess.start(config);
    const { id, body } = madeUpEvent(1, 'daily.data.meal.created');
    expect((await postSigned(receiver.url, body, { id })).status).toBe(202);
    expect((await postSigned(receiver.url, Buffer.from('no JSON'), { id: 'msg_made_up' })).status).toBe(202);
    expect(await receiver.kill('SIGTERM')).toEqual({ code: 0, signal: null });
    writeConfig(folder, { sinks });
    for (const path of below(folder)) chownSync(path, OTHER, OTHER);

    const user = String(JSON.parse(body.toString()).user_id);
    const archive = join(folder, 'archive');
    const flags = ['--config', config];
    const asRoot = async (...args: string[]): Promise<string> => {
      const done = await millraceProcess(args, { cwd: folder });
      expect(done.code, `${args.join(' ')}: ${done.stderr}`).toBe(0);
      expect(done.stderr).toContain(`acting as ${OTHER}, who owns `);
      return done.stdout;
    };
    expect(await asRoot('sink', 'drop', 'gone', ...flags)).toMatch(/^gone: \d dead letters\n$/);
    await asRoot('quarantine', 'drop', '--all', ...flags);
    await asRoot('status', ...flags);
    await asRoot('replay', archive, '--to', 'archive', ...flags);
    await asRoot('archive', 'compact', archive, '--min-age', '0s', ...flags);
    await asRoot('erase', user, '--now', ...flags);
    const owners = ownersOf(folder);
    expect(Object.keys(owners)).toContain(join(folder, 'journal/audit.jsonl'));
    expect(new Set(Object.values(owners))).toEqual(new Set([OTHER]));
    expect(readFileSync(join(folder, 'journal/audit.jsonl'), 'utf8')).toContain('"erase"');
  },
);
