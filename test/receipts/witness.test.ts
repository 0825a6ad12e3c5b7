import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, onTestFinished, test } from 'vitest';
import { createHash, generateKeyPairSync, randomBytes } from 'node:crypto';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { noteSigner, signNote, verifierText } from '../../src/receipts/note.ts';
import { Witnesses } from '../../src/receipts/witnesses.ts';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { Receiver } from '../support/receiver.ts';
import type { Serving } from '../support/serving.ts';
import { skipped } from '../support/requirements.ts';
import { postSigned } from '../support/signed-events.ts';
import { until } from '../support/until.ts';
import { buildGo } from './build-go.ts';
import { witnessBy } from './witness-by-hand.ts';

const ORIGIN = 'made-up.example/events';

const { lack, program } = buildGo('./witness');

/** Starts the witness, which is a program in Go that shares nothing with ours. */
async function startWitness(key: string, state: string, address = '127.0.0.1:0') {
  const child = spawn(program, [key, state, address], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  const [url = '', vkey = ''] = line.split(' ');
  const stop = async (): Promise<void> => {
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
  };
  return { url, vkey, stop };
}

/** @param promises whether receipts are to be given */
async function post(receiver: Serving, from: number, count: number, promises = true): Promise<string[]> {
  const kept: string[] = [];
  for (let n = from; n < from + count; n += 1) {
    const { id, body } = madeUpEvent(n);
    const { status, headers } = await postSigned(receiver.url, body, { id });
    expect([status, typeof headers['millrace-receipt']]).toEqual([202, promises ? 'string' : 'undefined']);
    const receipt = headers['millrace-receipt'];
    kept.push(JSON.stringify({ id, receipt, body_base64: body.toString('base64') }));
  }
  return kept;
}

test.skipIf(lack !== null)(
  `a witness signs what goes on from what it signed, keeps nobody waiting, and refuses a log that went back${skipped(lack)}`,
  async () => {
    const folder = await temporaryFolder();
    const place = join(folder, 'receiver');
    mkdirSync(place);
    const state = join(folder, 'witness.json');
    const key = join(folder, 'log.key');
    const { privateKey } = generateKeyPairSync('ed25519');
    writeFileSync(key, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 });
    const logKey = verifierText(noteSigner(ORIGIN, privateKey));
    let witness = await startWitness(logKey, state);
    const { vkey } = witness;
    const config = writeConfig(place, {
      receipts: {
        path: join(place, 'receipts'),
        origin: ORIGIN,
        key,
        interval: '50ms',
        witnesses: [`${witness.url} ${vkey}`],
      },
    });
    const file = join(folder, 'kept.ndjson');
    const verified = async (receiver: Receiver, kept: readonly string[]) => {
      writeFileSync(file, kept.map((one) => `${one}\n`).join(''));
      const log = new URL('/receipts/', receiver.url).href;
      const by = ['--log', log, '--key', logKey, '--witness', vkey, '--json'];
      const { stdout, code } = await millrace(['receipt', 'verify', file, ...by]);
      const { proven, receipts } = JSON.parse(stdout) as { proven: number; receipts: { detail: string }[] };
      return { code, proven, detail: receipts[0]?.detail ?? '' };
    };
    let receiver = await Receiver.start(config);
    const kept = await post(receiver, 0, 3);
    const all = async (count: number) =>
      until('the witness to have signed', async () => (await verified(receiver, kept)).proven === count);
    await all(3);
    expect((await verified(receiver, kept)).detail).toMatch(
      /^entry \d+ of 3, signed by witness\.made-up\.example\/w1 at 20/,
    );
    expect((await millrace(['status', '--config', config])).stdout).toContain('w1: 3 entries signed');

    // Gone, it is told of; deliveries and their proofs go on, and it signs all of it once it is back.
    await witness.stop();
    kept.push(...(await post(receiver, 3, 40)));
    await until('it to be told', () =>
      receiver.stderr.includes('a witness did not sign the log of receipts'),
    );
    expect(await verified(receiver, kept)).toMatchObject({ code: 3, proven: 3 });
    witness = await startWitness(logKey, state, new URL(witness.url).host);
    expect(witness.vkey).toBe(vkey);
    await all(43);
    await receiver.kill('SIGTERM');

    // All of the receiver's disk is put back, the key with it: nothing here can tell, and the witness can.
    const older = join(folder, 'older');
    cpSync(place, older, { recursive: true });
    receiver = await Receiver.start(config);
    kept.push(...(await post(receiver, 43, 5)));
    await all(48);
    await receiver.kill('SIGTERM');
    rmSync(place, { recursive: true });
    cpSync(older, place, { recursive: true });
    receiver = await Receiver.start(config);
    await post(receiver, 1000, 2, false);
    await until('it to see an older copy', () => receiver.stderr.includes('the log is an older copy'));
    await post(receiver, 2000, 9, false);
    await until('it to see a longer one', () =>
      receiver.stderr.includes('this is not the log it has signed'),
    );
    await post(receiver, 3000, 1, false);
    expect((await millrace(['status', '--config', config])).stdout).toContain(
      'REFUSES, and no receipts are given',
    );
    expect(JSON.parse(readFileSync(state, 'utf8'))).toMatchObject({ Size: 48 });
  },
);

test('what names no witness is told at the start', async () => {
  const folder = await temporaryFolder();
  const receipts = { path: join(folder, 'receipts'), origin: ORIGIN };
  const logKey = verifierText(noteSigner(ORIGIN, generateKeyPairSync('ed25519').privateKey));
  for (const witness of [
    'https://made-up.example',
    `made-up ${logKey}`,
    `https://made-up.example ${logKey}`,
  ]) {
    const config = writeConfig(folder, { receipts: { ...receipts, witnesses: [witness] } });
    const { code, stderr, stdout } = await millrace(['check', '--config', config]);
    expect([code, stderr + stdout]).toEqual([2, expect.stringContaining('receipts.witnesses[0]')]);
  }
});

test('answers that are no signature are kept nowhere, and one that never comes holds up no end', async () => {
  let answer: ((response: ServerResponse) => void) | null = null;
  const server = createServer((_request, response) => answer?.(response)).listen(0, '127.0.0.1');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, 'listening');
  const signer = noteSigner(ORIGIN, generateKeyPairSync('ed25519').privateKey);
  const note = signNote(`${ORIGIN}\n1\n${Buffer.alloc(32).toString('base64')}\n`, signer);
  const typed = Buffer.concat([Buffer.of(4), randomBytes(32)]);
  const id = createHash('sha256').update('w\n').update(typed).digest('hex').slice(0, 8);
  const kept: string[] = [];
  let now = 0;
  const witnesses = new Witnesses({
    witnesses: [
      `http://127.0.0.1:${(server.address() as AddressInfo).port} w+${id}+${typed.toString('base64')}`,
    ],
    prove: () => Promise.resolve([]),
    keep: async (text) => void kept.push(text),
    log: { info: () => undefined, warn: () => undefined, error: () => undefined },
    now: () => (now += 10_000),
  });
  const trouble = async () => {
    witnesses.ask({ note, size: 1 });
    const before = now;
    await until('an answer', () => now > before);
    const [{ trouble: text, refuses } = { trouble: null, refuses: false }] = witnesses.status();
    return { text, refuses };
  };
  const line = `— w ${Buffer.concat([Buffer.from(id, 'hex'), randomBytes(72)]).toString('base64')}\n`;
  for (const [status, text, expected, refuses] of [
    [200, 'made up', 'has no signature of w', false],
    [200, line, 'has no signature of w', false],
    [200, line.repeat(1000), 'too long', false],
    [409, 'made up', 'answered 409', false],
    [403, '', 'answered 403', false],
    [409, '7\n', 'an older copy', true],
    // What it said stays until it signs.
    [500, '', 'answered 500', true],
    [302, '', 'fetch failed', true],
    [422, '', 'not the log it has signed', true],
  ] as const) {
    // Who is sent elsewhere is not asked there.
    answer = (response) =>
      void response
        .writeHead(response.req.url === '/elsewhere' ? 200 : status, { location: '/elsewhere' })
        .end(text);
    expect(await trouble()).toEqual({ text: expect.stringContaining(expected), refuses });
  }
  answer = null;
  witnesses.ask({ note, size: 1 });
  await witnesses.stop();
  expect(kept).toEqual([]);
});

function askedOf(witnesses: readonly string[], keptBefore: string | null = null) {
  const kept: string[] = [];
  /** Of whom nothing bad was known when this was kept. */
  const waitedFor: string[][] = [];
  let now = 0;
  const asked = new Witnesses({
    witnesses,
    prove: () => Promise.resolve([]),
    kept: keptBefore,
    keep: async (text) => {
      kept.push(text);
      waitedFor.push(asked.status().flatMap(({ name, trouble }) => (trouble === null ? [name] : [])));
    },
    log: { info: () => undefined, warn: () => undefined, error: () => undefined },
    now: () => (now += 10_000),
  });
  onTestFinished(() => asked.stop());
  return { asked, kept, waitedFor };
}

function checkpointOf(size: number) {
  const signer = noteSigner(ORIGIN, generateKeyPairSync('ed25519').privateKey);
  return { note: signNote(`${ORIGIN}\n${size}\n${Buffer.alloc(32).toString('base64')}\n`, signer), size };
}

test('what a witness has signed stays, whoever signs later, hangs, or begins again', async () => {
  let isBack = false;
  const good = await witnessBy('good', (line, note) => [200, line(note)]);
  const late = await witnessBy('late', (line, note) => (isBack ? [200, line(note)] : [500, '']));
  const hanging = await witnessBy('hanging', () => null);
  const checkpoint = checkpointOf(3);
  const one = askedOf([good.text, late.text]);
  one.asked.ask(checkpoint);
  await until('the good one', () => one.kept.length === 1);
  isBack = true;
  await until('the other', () => {
    one.asked.ask(checkpoint);
    return one.kept.length === 2;
  });
  expect(one.kept[1]).toBe(checkpoint.note + good.line(checkpoint.note) + late.line(checkpoint.note));
  // After a restart, with the first one gone.
  const again = askedOf([late.text, hanging.text, good.text.replace(/:\d+/, ':1')], one.kept[1]);
  again.asked.ask(checkpoint);
  await until('it again', () => again.kept.length > 0);
  expect(again.waitedFor[0]).toContain('hanging');
  for (const { line } of [good, late]) expect(again.kept[0]).toContain(line(checkpoint.note));
});

test('who asks for several witnesses finds no fewer while one of them takes a little longer', async () => {
  let gate: Promise<void> = Promise.resolve();
  const good = await witnessBy('good', (line, note) => [200, line(note)]);
  const slow = await witnessBy('slow', async (line, note) => {
    await gate;
    return [200, line(note)];
  });
  const { asked, kept } = askedOf([good.text, slow.text]);
  const both = (note: string): string => note + good.line(note) + slow.line(note);
  const first = checkpointOf(3);
  asked.ask(first);
  await until('both', () => kept.at(-1)?.includes('— slow') === true);
  const before = kept.length;
  const open = Promise.withResolvers<void>();
  gate = open.promise;
  const next = checkpointOf(4);
  asked.ask(next);
  await until('the good one', () => asked.status()[0]?.entries === 4);
  expect(kept).toHaveLength(before);
  open.resolve();
  await until('the other', () => kept.length > before);
  expect(kept.at(-1)).toBe(both(next.note));
});

test('only a signature of the note itself counts as signed entries', async () => {
  const checkpoint = checkpointOf(3);
  const other = checkpointOf(2);
  const lying = await witnessBy('lying', (line, note) => {
    // What stands before the last empty line of note and answer is what this is a signature of.
    const paragraph = line(note, `${note}another text\n`);
    return [200, `another text\n\n${paragraph}${line(other.note)}`];
  });
  const typed = await witnessBy('typed', () => [409, '2\n']);
  const { asked, kept } = askedOf([lying.text, typed.text]);
  asked.ask(checkpoint);
  await until('both to have answered', () => asked.status().every(({ trouble }) => trouble !== null));
  expect(asked.status().map(({ entries }) => entries)).toEqual([0, 0]);
  expect(kept).toEqual([]);
});
