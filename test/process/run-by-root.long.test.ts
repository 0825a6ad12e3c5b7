import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  globSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { MAIN, millraceProcess, writeConfig } from '../support/millrace.ts';
import { Place } from '../support/place.ts';
import { firstLack, lacksRoot, skipped, type Lack } from '../support/requirements.ts';
import { until } from '../support/until.ts';

/** The receiver's user: a number that no name is known of. */
const OTHER = 54_321;

/** A checkout below /root can be read by root only. */
function lacksOpenCheckout(): Lack {
  const trial = spawnSync(process.execPath, [MAIN, '--version'], { uid: OTHER, gid: OTHER, stdio: 'ignore' });
  return trial.status === 0 ? null : 'needs a checkout that other users can read';
}

const lack = firstLack(lacksRoot(), process.getuid?.() === 0 ? lacksOpenCheckout() : null);

const below = (folder: string): string[] => [folder, ...globSync(join(folder, '**/{*,.*}'))];
test.skipIf(lack !== null)(
  `what root's commands create belongs to the receiver's user${skipped(lack)}`,
  async () => {
    const place = await Place.make();
    const { folder } = place;
    const sinks = { archive: { type: 'files', path: place.at('archive') } };
    const gone = { type: 'files', path: '/dev/null/nowhere', required: false };
    place.write({ sinks: { ...sinks, gone }, envelope: { teams: [] } });
    const receiver = await place.startProcess();
    const { id, body } = madeUpEvent(1, 'daily.data.meal.created');
    await receiver.send([
      { id, body },
      { id: 'msg_made_up', body: Buffer.from('no JSON') },
    ]);
    await receiver.stop();
    place.write({ sinks });
    for (const path of below(folder)) chownSync(path, OTHER, OTHER);

    const user = String(JSON.parse(body.toString()).user_id);
    const archive = place.at('archive');
    const flags = ['--config', place.config];
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
    expect(new Set(below(folder).map((path) => lstatSync(path).uid))).toEqual(new Set([OTHER]));
    expect(readFileSync(place.at('journal/audit.jsonl'), 'utf8')).toContain('"erase"');
  },
);

/** A folder of the other user's, whose sink module notes who runs it. */
async function theirFolder(): Promise<{ folder: string; ranAs: () => string[] }> {
  const folder = await temporaryFolder();
  const seen = join(folder, 'seen');
  const module = `import { appendFileSync } from 'node:fs';
    appendFileSync(${JSON.stringify(seen)}, process.geteuid() + '\n');
    export const parseOptions = () => ({});
    export const createSink = () => { throw new Error('made up'); };`.replaceAll("'\n'", String.raw`'\n'`);
  writeFileSync(join(folder, 'own.mjs'), module);
  mkdirSync(join(folder, 'config'));
  const written = writeConfig(folder, {
    sinks: { own: { type: '../own.mjs' } },
    journal: { path: 'journal' },
  });
  renameSync(written, join(folder, 'config/millrace.yaml'));
  return { folder, ranAs: () => readFileSync(seen, 'utf8').trim().split('\n') };
}

function giveAway(...paths: readonly string[]): void {
  for (const path of paths) lchownSync(path, OTHER, OTHER);
}

test.skipIf(lack !== null)(
  `fault 56: root runs no code of the user whose .env names a config${skipped(lack)}`,
  async () => {
    const { folder, ranAs } = await theirFolder();
    // It names a journal of root's, which once kept root.
    const journal = await temporaryFolder();
    writeFileSync(
      join(folder, '.env'),
      `MILLRACE_CONFIG=config/millrace.yaml\nMILLRACE_JOURNAL_PATH=${journal}\n`,
    );
    giveAway(...below(folder));
    for (const args of [['check'], ['replay', 'journal', '--to', 'own', '--dry-run'], ['serve']]) {
      const { stderr } = await millraceProcess(args, { cwd: folder });
      expect(stderr, args.join(' ')).toContain(`acting as ${OTHER}, who owns `);
    }
    expect(new Set(ranAs())).toEqual(new Set([String(OTHER)]));
    expect(readdirSync(journal)).toEqual([]);
  },
);

test.skipIf(lack !== null)(
  `fault 56: root obeys no config, module or link before it acts as who owns it${skipped(lack)}`,
  async () => {
    const give: Record<string, (folder: string) => void> = {
      config: (folder) => giveAway(join(folder, 'config/millrace.yaml')),
      module: (folder) => giveAway(join(folder, 'own.mjs')),
      folder: (folder) => giveAway(join(folder, 'config')),
      link: (folder) => {
        renameSync(join(folder, 'config'), join(folder, 'real'));
        symlinkSync('real', join(folder, 'config'));
        giveAway(join(folder, 'config'));
      },
    };
    for (const [what, change] of Object.entries(give)) {
      const { folder, ranAs } = await theirFolder();
      change(folder);
      chmodSync(folder, 0o777);
      const { stderr } = await millraceProcess(['check'], { cwd: folder });
      expect(stderr, what).toContain(`acting as ${OTHER}, who owns `);
      expect(ranAs(), what).toEqual([String(OTHER)]);
    }
  },
);

test.skipIf(lack !== null)(
  `fault 56: a journal's folder that is another user's link makes root act as that user${skipped(lack)}`,
  async () => {
    const folder = await temporaryFolder();
    const target = await temporaryFolder();
    symlinkSync(target, join(folder, 'link'));
    giveAway(join(folder, 'link'));
    const config = writeConfig(folder, { journal: { path: join(folder, 'link/journal') } });
    const { code, stderr } = await millraceProcess(['erase', 'user_made_up', '--now', '--config', config]);
    expect(stderr).toContain(`acting as ${OTHER}, who owns ${join(folder, 'link')}\n`);
    expect(code).not.toBe(0);
    expect(readdirSync(target)).toEqual([]);
  },
);

test.skipIf(lack !== null)(
  `fault 56: a receiver that root runs does not reload a config that has become another user's${skipped(lack)}`,
  async () => {
    const place = await Place.make();
    const receiver = await place.startProcess();
    giveAway(place.config);
    receiver.signal('SIGHUP');
    await until('the refusal', () => receiver.stderr.includes(`${place.config} belongs to user ${OTHER}`));
    expect(await receiver.kill('SIGTERM')).toEqual({ code: 0, signal: null });
  },
);
