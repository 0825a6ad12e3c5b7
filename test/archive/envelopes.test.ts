import { sign } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { JournalEvent } from '../../src/core/event.ts';
import { readSigner } from '../../src/privacy/proof/open.ts';
import { eventOf, userId } from '../privacy/erase/support.ts';
import { batchOf, proofIn, writeFiles } from '../support/archives.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { SECRET } from '../support/signed-events.ts';
import { signStandardWebhooks } from '../../src/receive/verify/sign-standard-webhooks.ts';
import { hashLine } from '../../src/lib/chained-log.ts';
import { codesIn as codes, forge, linesOf, unsigned, verifyAs as verify } from './forger.ts';

interface Place {
  readonly archive: string;
  readonly config: string;
  readonly key: string;
}

/** One finished file of these events, with a manifest signed by the key in the erasure folder. */
async function archiveOf(events: readonly JournalEvent[], sections: object = {}): Promise<Place> {
  const folder = await temporaryFolder();
  const erasure = join(folder, 'erasure');
  const config = writeConfig(folder, { erasure: { path: erasure }, ...sections });
  const archive = join(folder, 'archive');
  const batch = batchOf(...events.map((event) => signed(event)));
  await writeFiles(archive, [batch], { options: { compress: 'none' }, proof: proofIn(erasure) });
  return { archive, config, key: join(erasure, 'manifest.key') };
}

/** Signed by its sender, unless it has no headers. */
function signed(event: JournalEvent): JournalEvent {
  if (Object.keys(event.headers).length === 0) return event;
  return { ...event, headers: signStandardWebhooks(SECRET, event.id, event.receivedAt, event.body) };
}

/** Changes the lines of the one file, and signs a manifest for it: who has the disk has the key beside it. */
function change({ archive, key }: Place, lines: (before: string[]) => string[]): void {
  const [line = {}] = linesOf(archive);
  const file = join(archive, String(line['file']));
  const after = lines(readFileSync(file, 'utf8').trimEnd().split('\n'));
  const text = after.map((one) => `${one}\n`).join('');
  writeFileSync(file, text);
  const types: Record<string, number> = {};
  for (const one of after) {
    const type = (JSON.parse(one) as { event_type: string }).event_type;
    types[type] = (types[type] ?? 0) + 1;
  }
  const signer = readSigner(key);
  if (signer === null) throw new Error('there is no key');
  const now = {
    ...unsigned(line),
    records: after.length,
    bytes: Buffer.byteLength(text),
    sha256: hashLine(text),
    types,
  };
  forge(archive, [now], (fields) => {
    const unfinished = `${JSON.stringify(fields).slice(0, -1)},"signed_by":"${signer.publicKey}"`;
    const signature = sign(null, Buffer.from(`millrace manifest 1\n${unfinished}`), signer.key);
    return `${unfinished},"signature":"${signature.toString('base64url')}"}`;
  });
}

/** Codes of what is found, less that the noted head of the manifest is gone: a forger would put that file in order too. */
async function found(place: Place, ...more: string[]): Promise<[number | null, string[]]> {
  const ended = await verify(place, ...more);
  return [ended.code, codes(ended).filter((code) => code !== 'head_missing')];
}

const EVENTS = [0, 1, 2].map((n) => eventOf(1, n));

test('an archive of events as they came is as their bodies say', async () => {
  const place = await archiveOf(EVENTS);
  const ended = await verify(place);
  expect([ended.code, ended.stdout]).toEqual([
    0,
    expect.stringContaining('type and ids: 3 compared with the body\n'),
  ]);
});

const TYPE = '"event_type":"daily.data.meal.created","team';
const USER = `"user_id":"${userId(1)}"`;
const CLIENT = ',"client_user_id":"made-up-client-1","headers"';

test.each<[member: string, from: string | RegExp, to: string]>([
  ['event_type', TYPE, TYPE.replace('meal', 'sleep')],
  ['user_id', userId(1), userId(2)],
  ['user_id', `${USER}${CLIENT}`, `"user_id":null${CLIENT}`],
  ['team_id', /"team_id":"[^"]*"/, `"team_id":"${userId(9)}"`],
  ['client_user_id', 'made-up-client-1', 'made-up-client-2'],
])(
  'a record whose %s is not that of its body is named, also when the manifest is signed',
  async (member, from, to) => {
    const place = await archiveOf(EVENTS);
    change(place, (lines) => lines.map((line, n) => (n === 1 ? line.replace(from, to) : line)));
    const ended = await verify(place);
    expect([ended.code, codes(ended).filter((code) => code !== 'head_missing')]).toEqual([
      4,
      ['envelope_differs'],
    ]);
    expect(ended.stdout).toMatch(new RegExp(`:2: envelope_differs: the record has another ${member} than`));
  },
);

const { team = '' } = EVENTS[0] ?? {};
const [TEXT = ''] = EVENTS.map(({ body }) => body.toString());
const ANONYMOUS = 'labtest.match_review.created';
const NAMELESS = {
  type: ANONYMOUS,
  body: Buffer.from(JSON.stringify({ event_type: ANONYMOUS, team_id: team, data: {} })),
  clientUser: null,
};
const PERSON = Buffer.from(TEXT.replace('"user_id"', '"person"'));
const MASKED = Buffer.from(TEXT.replace('made-up-client-1', '***'));
const UNSIGNED = { headers: {} };

test.each<[what: string, differs: boolean, events: readonly JournalEvent[], sections?: object]>([
  [
    'a record without a user whose signed body names none',
    false,
    [eventOf(1, 1, { ...NAMELESS, user: null })],
  ],
  ['a record with a user whose signed body names none', true, [eventOf(1, 1, NAMELESS)]],
  [
    'what a broker says beside the body',
    false,
    [eventOf(1, 1, { ...UNSIGNED, body: Buffer.from('{"data":{}}') })],
  ],
  ['a redacted client user', false, [eventOf(1, 2, { ...UNSIGNED, body: MASKED, clientUser: null })]],
  ['a broker that names another user than the body', true, [eventOf(1, 1, { ...UNSIGNED, user: userId(2) })]],
  [
    'names of the envelope as the config has them',
    false,
    [eventOf(1, 1, { body: PERSON })],
    { envelope: { user: 'person' } },
  ],
])('%s: differs, %s', async (_, differs, events, sections) => {
  expect(await found(await archiveOf(events, sections))).toEqual(
    differs ? [4, ['envelope_differs']] : [0, []],
  );
});

test('a body that cannot be read is compared with nothing, and that is said', async () => {
  const ended = await verify(await archiveOf([...EVENTS, eventOf(1, 4, { body: Buffer.from('no JSON') })]));
  expect(ended.stdout).toContain(
    'type and ids: 3 compared with the body, not compared: 1 with a body that cannot be read',
  );
});

test('a line that is twice in a file is named, also when the manifest is signed', async () => {
  const place = await archiveOf(EVENTS);
  change(place, (lines) => [...lines, lines[0] ?? '']);
  const ended = await verify(place);
  expect([ended.code, ended.stdout]).toEqual([
    4,
    expect.stringMatching(/:4: record_repeated: the same as line 1/),
  ]);
});

test('sealed records are compared where their keys are at hand, and counted where they are not', async () => {
  const folder = await temporaryFolder();
  const archive = join(folder, 'archive');
  const store = join(folder, 'keys');
  const masterKey = Buffer.alloc(32, 7).toString('base64');
  const encrypt = { store, masterKey };
  const forged = eventOf(1, 5, { user: userId(2) });
  await writeFiles(archive, [batchOf(...EVENTS, forged)], { options: { encrypt } });
  const env = { MASTER: masterKey };
  const closed = await millrace(['archive', 'verify', archive], { env });
  expect([closed.code, closed.stdout]).toEqual([
    0,
    expect.stringContaining('type and ids: 0 compared with the body, not compared: 4 sealed'),
  ]);
  const opened = await millrace(
    ['archive', 'verify', archive, '--keys', store, '--master-key-env', 'MASTER'],
    { env },
  );
  expect([opened.code, codes(opened)]).toEqual([4, ['envelope_differs']]);
});
