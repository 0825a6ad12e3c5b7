import { equal, notEqual } from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { readArchive } from '../../src/archive/read.ts';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { KeyStore } from '../../src/privacy/seal/key-store.ts';
import { parseMasterKey } from '../../src/privacy/seal/master-key.ts';
import { segmentsOf } from '../support/journal-files.ts';
import { blocksOf } from '../support/markdown.ts';
import { childEnvironment, MAIN, ROOT } from '../support/millrace.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { firstLack, lacksProgram, skipped } from '../support/requirements.ts';
import { ServeProcess } from '../support/serve-process.ts';
import { quoted, writeShim } from '../support/shell.ts';
import { SECRET } from '../support/signed-events.ts';
import { until } from '../support/until.ts';

const README = 'docs/backup.md';
const MASTER = `mrk_${Buffer.alloc(32, 7).toString('base64')}`;
const lack = firstLack(...['bash', 'tar'].map(lacksProgram));

const idOf = (n: number): string => `msg_made_up_${n}`;
const idsOf = (from: number, end: number): string[] =>
  Array.from({ length: end - from }, (_, n) => idOf(from + n));
const userOf = (n: number): string => (JSON.parse(eventOf(n).toString()) as { user_id: string }).user_id;
const eventOf = (n: number): Buffer => madeUpEvent(n, 'daily.data.meal.created').body;

/** Events 0 to 4 are in the backup; 5 to 9 came to both sinks after it; then user 1 was erased; 10 to 12 wait for `gated`. */
const BACKED_UP = 5;
const DELIVERED = 10;
const ALL = 13;
const ERASED = 1;
const KEPT = idsOf(0, ALL).filter((id) => id !== idOf(ERASED));

/** The machine of the section, below a temporary folder. */
class Machine {
  readonly #root: string;
  readonly config: string;
  readonly state: string;
  readonly #env: NodeJS.ProcessEnv;

  constructor(root: string) {
    this.#root = root;
    this.config = join(root, 'etc/millrace.yaml');
    this.state = join(root, 'state');
    const bin = join(root, 'bin');
    for (const name of ['bin', 'state', 'etc', 'backups', 'gate', 'lost']) mkdirSync(join(root, name));
    this.#env = childEnvironment({
      PATH: `${bin}:${process.env['PATH'] ?? ''}`,
      MILLRACE_CONFIG: this.config,
    });
    writeShim(bin, 'millrace', `exec ${quoted(process.execPath)} ${quoted(MAIN)} "$@"`);
    writeShim(bin, 'sudo', 'shift 2; exec "$@"');
    writeShim(bin, 'journalctl', 'exit 0');
    // The tests start and stop the receiver themselves.
    writeShim(bin, 'systemctl', `echo "$1" >> ${quoted(join(root, 'systemctl'))}`);
    const sink = new URL('./gated-sink.ts', import.meta.url).pathname;
    const encrypt = { store: './data/keys', masterKey: `\${file:${join(root, 'etc/master-key')}}` };
    writeFileSync(join(root, 'etc/master-key'), MASTER);
    const config = {
      server: { host: '127.0.0.1', port: 0 },
      admin: { port: 0 },
      shutdown: { deadline: '1s' },
      signing: { secrets: [SECRET] },
      sinks: {
        archive: { type: 'files', path: './data/archive', encrypt },
        gated: { type: sink, folder: join(root, 'gate') },
      },
      routes: [{ match: '*', to: ['archive', 'gated'] }],
    };
    writeFileSync(this.config, JSON.stringify(config));
  }

  data(...names: string[]): string {
    return join(this.state, 'data', ...names);
  }

  openGate(): void {
    writeFileSync(join(this.#root, 'gate/gate'), '');
  }

  closeGate(): void {
    rmSync(join(this.#root, 'gate/gate'));
  }

  /** What `gated` has been sent. */
  sent(): ReadonlySet<string> {
    const file = join(this.#root, 'gate/delivered');
    return new Set(existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : []);
  }

  /** Ids of the archive's records that the keys at hand open. */
  async archived(): Promise<ReadonlySet<string>> {
    const opener = await KeyStore.read(this.data('keys'), parseMasterKey(MASTER));
    const found = new Set<string>();
    for await (const item of readArchive(this.data('archive'), { opener, parts: true }))
      if (item.kind === 'record') found.add(item.record.id);
    return found;
  }

  /** Runs a text of the section, with its folders exchanged. */
  bash(text: string): Promise<{ code: number; output: string }> {
    const script = text
      .replaceAll('/var/lib/millrace', this.state)
      .replaceAll('$(date --utc +%F)', '2026-11-28')
      .replaceAll('/var/backups', join(this.#root, 'backups'))
      .replaceAll('/etc/millrace', join(this.#root, 'etc'))
      .replaceAll('erased-since.txt', join(this.#root, 'erased-since.txt'));
    return new Promise((resolve) => {
      const child = execFile(
        'bash',
        ['-c', `set -u\n${script}`],
        { cwd: this.state, env: this.#env },
        (_error, stdout, stderr) => resolve({ code: child.exitCode ?? -1, output: stdout + stderr }),
      );
    });
  }

  async serve(): Promise<ReceiverProcess> {
    return ReceiverProcess.start(this.config, { cwd: this.state });
  }

  /** What a start says that ends by itself. */
  async refused(): Promise<string> {
    const receiver = new ReceiverProcess(this.config, { cwd: this.state });
    notEqual((await receiver.exited).code, 0);
    return receiver.stderr;
  }

  keep(as: string): void {
    execFileSync('cp', ['-a', this.state, join(this.#root, 'gate'), join(this.#root, as)]);
  }

  restore(from: string): void {
    for (const name of ['state', 'gate']) {
      rmSync(join(this.#root, name), { recursive: true, force: true });
      execFileSync('cp', ['-a', join(this.#root, from, name), join(this.#root, name)]);
    }
    rmSync(join(this.#root, 'systemctl'), { force: true });
    writeFileSync(join(this.#root, 'erased-since.txt'), `${userOf(ERASED)}\n`);
  }
}

const BLOCKS = blocksOf(README);
function block(name: string): string {
  const found = BLOCKS.find(({ info }) => info[0] === 'sh' && info[1] === name);
  expect(found, `the block "sh ${name}" of ${README}`).toBeDefined();
  return found?.text ?? '';
}

/** Rows of the section's table: by the words of the start, the command that resolves it, if one does. */
const ROWS: ReadonlyMap<string, string | null> = (() => {
  const text = readFileSync(join(ROOT, README), 'utf8');
  const rows = Array.from(text.matchAll(/^\| `([^`]+)`[^|]*\| (.*) \|$/gm));
  return new Map(
    rows.map(([, says = '', what = '']) => [says, /`(millrace [^`]+)`/.exec(what)?.[1] ?? null]),
  );
})();

const STALE_ERASURES = 'Erasure folder was replaced by an older copy';
const STALE_KEYS = 'Key store was changed or replaced by an older copy';
const DAMAGED = 'Journal is damaged, and nothing says how far its sinks are';
const MENDED = 'the journal was damaged';

function commandOf(says: string): string {
  const command = ROWS.get(says) ?? null;
  expect(command, `a command for ${says}`).not.toBeNull();
  return (command ?? '').replaceAll('USER', userOf(ERASED));
}

const restoring = (...folders: string[]): string => {
  const script = block('restore').replace(/^LOST=.*$/m, `LOST="${folders.join(' ')}"`);
  return `set -e\n${script}`;
};

let machine: Machine;
let root: string;
let before: number;

const post = (receiver: ServeProcess, from: number, end: number) =>
  receiver.send(
    Array.from({ length: end - from }, (_, n) => ({ id: idOf(from + n), body: eventOf(from + n) })),
  );

interface Difference {
  readonly code: string;
  readonly count: number;
  readonly ids: readonly string[];
}

async function reconciled(): Promise<{ code: number; differences: readonly Difference[] }> {
  const { code, output } = await machine.bash('millrace reconcile --json 2> /dev/null');
  return { code, ...(JSON.parse(output) as { differences: readonly Difference[] }) };
}

/** What of the kept ids is at neither place, and is not named by `reconcile` either. */
async function unnamed(): Promise<readonly string[]> {
  const { code, differences } = await reconciled();
  const named = new Set(differences.flatMap(({ ids }) => ids));
  if (differences.length > 0) expect(code).toBe(4);
  const [archived, sent] = [await machine.archived(), machine.sent()];
  return KEPT.filter((id) => !(archived.has(id) && sent.has(id)) && !named.has(id));
}

/** Serves until all that waits is delivered. @returns the log */
async function served(): Promise<string> {
  machine.openGate();
  const receiver = await machine.serve();
  await receiver.drained();
  await receiver.kill('SIGTERM');
  return receiver.stderr;
}

/** The erased user is nowhere that anybody can read, and stays away. */
async function expectErased(sentBefore: ReadonlySet<string>): Promise<void> {
  expect((await machine.archived()).has(idOf(ERASED))).toBe(false);
  expect(machine.sent().has(idOf(ERASED))).toBe(sentBefore.has(idOf(ERASED)));
  for (const segment of segmentsOf(machine.data('journal')))
    expect(readFileSync(segment).includes(userOf(ERASED))).toBe(false);
  const receiver = await machine.serve();
  const answer = await receiver.post(eventOf(ERASED), { id: 'msg_made_up_later' });
  expect(answer.json).toMatchObject({ status: 'erased' });
  await receiver.kill('SIGTERM');
}

/** As the disk was lost, with nothing of the erased user at `gated`. */
function lost(): void {
  machine.restore('lost');
  const kept = [...machine.sent()].filter((id) => id !== idOf(ERASED));
  writeFileSync(join(root, 'gate/delivered'), kept.map((id) => `${id}\n`).join(''));
}

const replayed = () => {
  const command = commandOf('not_received').replace('SINK', 'gated');
  return machine.bash(command.replace('TIME', new Date(before).toISOString()));
};

describe.skipIf(lack !== null)(`back up and restore, typed from ${README}${skipped(lack)}`, () => {
  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), 'millrace-test-'));
    machine = new Machine(root);
    const one = new ServeProcess(machine.config, { cwd: machine.state });
    await one.listening();
    await post(one, 0, BACKED_UP);
    await one.kill('SIGTERM');
    before = Date.now();
    const made = await machine.bash(`set -e\n${block('backup')}`);
    equal(made.code, 0);
    equal(readFileSync(join(root, 'systemctl'), 'utf8'), 'stop\nstart\n');
    const two = new ServeProcess(machine.config, { cwd: machine.state });
    await two.listening();
    machine.openGate();
    await post(two, BACKED_UP, DELIVERED);
    await two.drained();
    machine.closeGate();
    const erased = await machine.bash(`millrace erase ${userOf(ERASED)} --now`);
    equal(erased.code, 0);
    await post(two, DELIVERED, ALL);
    await until('the archive has all', async () => {
      const { journal } = await two.status();
      return journal.cursors.every(({ sink, backlog }) => sink !== 'archive' || backlog === 0);
    });
    await two.kill('SIGKILL');
    machine.keep('lost');
  });
  afterAll(() => rmSync(root, { recursive: true, force: true }));

  test('the journal alone: what came since is named, and the archive has it for the other sink', async () => {
    lost();
    expect(await machine.bash(restoring('journal'))).toMatchObject({ code: 0 });
    expect(await machine.bash(block('erase-again'))).toMatchObject({ code: 0 });
    await served();
    const { code, differences } = await reconciled();
    expect(code).toBe(4);
    const strangers = differences.find((one) => one.code === 'not_received');
    expect(strangers?.ids.toSorted()).toEqual(idsOf(BACKED_UP, ALL).toSorted());
    expect(await replayed()).toMatchObject({ code: 0 });
    expect(KEPT.filter((id) => !machine.sent().has(id))).toEqual([]);
    expect(await unnamed()).toEqual([]);
    await expectErased(new Set());
  });

  test('all three of one backup under a newer archive: its records that no key opens are named', async () => {
    lost();
    expect(await machine.bash(restoring('journal', 'erasure', 'keys'))).toMatchObject({ code: 0 });
    // Records of keys that are gone may be anybody's.
    expect(await machine.bash(block('erase-again'))).toMatchObject({
      code: 3,
      output: expect.stringContaining('8 sealed records of keys that are not in this store'),
    });
    await served();
    const { code, differences } = await reconciled();
    expect(code).toBe(4);
    expect(differences).toMatchObject([{ code: 'unreadable', count: ALL - BACKED_UP }]);
    await expectErased(new Set());
  });

  test('an older key store is refused by name, and so is none; keys catch-up resolves it', async () => {
    lost();
    expect(await machine.bash(restoring('keys'))).toMatchObject({ code: 0 });
    const said = await machine.refused();
    expect(said).toContain(STALE_KEYS);
    expect(said).toContain('millrace keys catch-up --config');
    expect(await machine.bash(commandOf(STALE_KEYS))).toMatchObject({
      code: 0,
      output: expect.stringContaining('1 keys destroyed again'),
    });
    await served();
    const { differences } = await reconciled();
    expect(differences).toMatchObject([{ code: 'unreadable', count: ALL - BACKED_UP }]);
    expect(await unnamed()).toEqual([]);
    await expectErased(new Set());

    rmSync(machine.data('keys'), { recursive: true });
    expect(await machine.refused()).toContain(STALE_KEYS);
    expect(await machine.bash(commandOf(STALE_KEYS))).toMatchObject({ code: 0 });
    await served();
    expect(await unnamed()).toEqual([]);
  });

  test.each(['older', 'gone'])(
    'an erasure folder that is %s is refused by name, until who was erased is erased again',
    async (how) => {
      lost();
      if (how === 'older') expect(await machine.bash(restoring('erasure'))).toMatchObject({ code: 0 });
      else rmSync(machine.data('erasure'), { recursive: true });
      const said = await machine.refused();
      expect(said).toContain(STALE_ERASURES);
      expect(said).toContain('millrace erase USER --now');
      expect(await machine.bash(commandOf(STALE_ERASURES))).toMatchObject({ code: 0 });
      await served();
      expect(await unnamed()).toEqual([]);
      await expectErased(new Set());
    },
  );

  test('a journal without its database is mended and says so, and one without its note works', async () => {
    for (const name of ['journal.db', 'journal.note']) {
      lost();
      expect(await machine.bash(restoring('journal'))).toMatchObject({ code: 0 });
      rmSync(machine.data('journal', name));
      expect((await served()).includes(MENDED)).toBe(name === 'journal.db');
      const { differences } = await reconciled();
      expect(differences.some(({ code }) => code === 'damaged')).toBe(name === 'journal.db');
      expect(await machine.bash(block('erase-again'))).toMatchObject({ code: 0 });
      expect(await unnamed()).toEqual([]);
      await expectErased(new Set());
    }
  });

  test('a journal without both is refused by name, and journal recover resolves it', async () => {
    lost();
    expect(await machine.bash(restoring('journal'))).toMatchObject({ code: 0 });
    for (const name of ['journal.db', 'journal.note']) rmSync(machine.data('journal', name));
    expect(await machine.refused()).toContain(DAMAGED);
    const command = commandOf(DAMAGED).replace('SINK', 'archive --from-first gated');
    expect(await machine.bash(command)).toMatchObject({ code: 0 });
    expect(await machine.bash(block('erase-again'))).toMatchObject({ code: 0 });
    await served();
    expect(await unnamed()).toEqual([]);
    await expectErased(new Set());
  });

  test.each([
    ['.seg', 'journal.db', 'journal.note'],
    ['journal.note', 'journal.db', '.seg'],
    ['journal.db', '.seg', 'journal.note'],
  ])(
    'files copied while it ran, %s before %s before %s: nothing that came before is lost without a word',
    async (...order) => {
      lost();
      const receiver = await machine.serve();
      const copy = join(root, 'copy');
      rmSync(copy, { recursive: true, force: true });
      mkdirSync(copy);
      for (const [index, part] of order.entries()) {
        for (const name of readdirSync(machine.data('journal')))
          if (part === '.seg' ? name.endsWith(part) : name.startsWith(part))
            execFileSync('cp', ['-a', machine.data('journal', name), copy]);
        const n = ALL + index;
        await post(receiver, n, n + 1);
      }
      await receiver.kill('SIGKILL');
      rmSync(machine.data('journal'), { recursive: true });
      execFileSync('cp', ['-a', copy, machine.data('journal')]);
      await served();
      expect(await unnamed()).toEqual([]);
    },
  );

  test('every row of the table is held here', () => {
    const held = [STALE_ERASURES, STALE_KEYS, DAMAGED, MENDED, 'not_received', 'unreadable'];
    expect([...ROWS.keys()].toSorted()).toEqual(held.toSorted());
  });
});
