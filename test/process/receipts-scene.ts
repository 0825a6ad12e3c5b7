import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { expect } from 'vitest';
import { readSigner, type NoteSigner } from '../../src/privacy/receipts/note.ts';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { entryByHand } from '../privacy/receipts/entry-by-hand.ts';
import { prove } from '../privacy/receipts/prove.ts';
import { Place } from '../support/place.ts';
import type { Serving } from '../support/serving.ts';
import { until } from '../support/until.ts';

export const ORIGIN = 'made-up.example/events';

/** A place whose receiver gives receipts. */
export function receiptsPlace(
  more: (folder: string) => object = () => ({}),
  env: Readonly<Record<string, string>> = {},
): Promise<Place> {
  return Place.make((folder) => {
    const receipts = { path: join(folder, 'receipts'), origin: ORIGIN, interval: '50ms' };
    return { receipts, ...more(folder) };
  }, env);
}

export const userOf = (n: number): string => `00000000-0000-4000-8000-${String(2000 + n).padStart(12, '0')}`;

/** An event of a user; without a team it is quarantined. */
export function bodyOf(user: number, isValid = true, n = 0): Buffer {
  const { body } = madeUpEvent(n, 'daily.data.meal.created');
  const { team_id: team, ...rest } = JSON.parse(body.toString()) as Record<string, unknown>;
  const event = { ...rest, user_id: userOf(user), client_user_id: null, n };
  return Buffer.from(JSON.stringify(isValid ? { ...event, team_id: team } : event));
}

/** What a sender keeps of a delivery. */
export interface Kept {
  readonly id: string;
  readonly body: Buffer;
  readonly user: string;
  readonly receipt: string;
  readonly status: string;
  readonly leaf: number;
  readonly salt: Buffer;
  readonly received: number;
}

/** Sends one delivery, which has to be answered with a receipt. */
export async function post(receiver: Serving, id: string, body: Buffer): Promise<Kept> {
  const { status, headers, json } = await receiver.post(body, { id });
  const receipt = String(headers['millrace-receipt'] ?? '');
  const [, origin, leaf, salt = '', received] =
    /^log="(.+)", leaf=(\d+), salt="([\w-]{22})", received=(\d+)$/.exec(receipt) ?? [];
  expect([status, origin]).toEqual([202, ORIGIN]);
  return {
    id,
    body,
    user: (JSON.parse(body.toString()) as { user_id: string }).user_id,
    receipt,
    status: String(json['status']),
    leaf: Number(leaf),
    salt: Buffer.from(salt, 'base64url'),
    received: Number(received),
  };
}

/** Sends so many made-up events of several users, all at once. */
export function send(receiver: Serving, count: number, from = 0): Promise<Kept[]> {
  return Promise.all(
    Array.from({ length: count }, (_, n) => {
      const { id, body } = madeUpEvent(from + n, 'daily.data.meal.created');
      return post(receiver, id, body);
    }),
  );
}

/** Base64 of the entry that the log has of a delivery. */
export const entryOf = (kept: Kept): string => entryByHand(kept).toString('base64');

/** Lines of a file of receipts, as a sender keeps them. */
export const linesOf = (all: readonly Pick<Kept, 'id' | 'body' | 'receipt'>[]): string =>
  all
    .map(
      ({ id, body, receipt }) => `${JSON.stringify({ id, receipt, body_base64: body.toString('base64') })}\n`,
    )
    .join('');

/** Waits until the log has them. @returns its key, and a proof of each */
export async function proofs(receiver: Serving, all: readonly Kept[]) {
  const base = new URL('/receipts/', receiver.url);
  const key = (await (await fetch(new URL('key', base))).text()).trim();
  return Promise.all(
    all.map(async (kept) => {
      const proof = await until('the entry to be in the log', async () => {
        const answer = await fetch(new URL(String(kept.leaf), base));
        return answer.status === 200 && answer.text();
      });
      return { key, entry: entryByHand(kept), proof };
    }),
  );
}

/** What `archive prove` says, in one object with its exit code. */
export async function proved(
  { config }: Place,
  archive: string,
  {
    more = [],
    env = {},
  }: { readonly more?: readonly string[]; readonly env?: Readonly<Record<string, string>> } = {},
) {
  const { code, stderr, said } = await prove(archive, ['--config', config, ...more], env);
  const all: Readonly<Record<string, unknown>> & { readonly stderr: string } = { ...said, code, stderr };
  return all;
}

/** The signer of the log of a place. */
export function signerOf(place: Place, origin = ORIGIN): NoteSigner {
  return readSigner(origin, readFileSync(place.at('erasure', 'receipts.key'), 'utf8'));
}

/** Paths of all files below a folder. */
export function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

export function plainBytes(path: string): Buffer {
  const bytes = readFileSync(path);
  return bytes.subarray(0, 2).equals(Buffer.of(0x1f, 0x8b)) ? gunzipSync(bytes) : bytes;
}
