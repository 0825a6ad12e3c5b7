import { createHmac, createSecretKey, timingSafeEqual, type KeyObject } from 'node:crypto';
import { fdatasync, openSync, write } from 'node:fs';
import type { IncomingHttpHeaders } from 'node:http';

/** A path that Svix Bridge can have, too. */
export const PATH = '/webhook/bench';

/** An answer of a rival: the same words in each. */
interface Reply {
  readonly status: number;
  readonly text: string;
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const TOLERANCE_S = 3600;

/**
 * Verify and file: what a careful handler in a hundred lines does with a delivery. A Standard Webhooks signature, JSON.parse,
 * the ids of the envelope, an append, and the answer after an fdatasync that all who wait share.
 */
export class VerifyAndFile {
  readonly #key: KeyObject;
  readonly #log: GroupLog;

  constructor(secret: string, file: string) {
    this.#key = createSecretKey(Buffer.from(secret.slice('whsec_'.length), 'base64'));
    this.#log = new GroupLog(file);
  }

  /** @param done called once, when the event is on disk or refused */
  take(headers: IncomingHttpHeaders, body: Buffer, done: (reply: Reply) => void): void {
    const id = headers['webhook-id'];
    const timestamp = headers['webhook-timestamp'];
    const signatures = headers['webhook-signature'];
    if (typeof id !== 'string' || typeof timestamp !== 'string' || typeof signatures !== 'string')
      return done({ status: 401, text: '{"error":"unsigned"}' });
    if (!(Math.abs(Date.now() / 1000 - Number(timestamp)) < TOLERANCE_S))
      return done({ status: 401, text: '{"error":"too old or too new"}' });
    const expected = Buffer.from(
      `v1,${createHmac('sha256', this.#key).update(`${id}.${timestamp}.`).update(body).digest('base64')}`,
    );
    const matches = signatures.split(' ').some((signature) => {
      const given = Buffer.from(signature);
      return given.length === expected.length && timingSafeEqual(given, expected);
    });
    if (!matches) return done({ status: 401, text: '{"error":"no signature matches"}' });
    if (!hasIds(body)) return done({ status: 400, text: '{"error":"not an event"}' });
    this.#log.append(Buffer.from(`${id} ${body.length}\n`), body, (error) => {
      if (error === null) done({ status: 202, text: `{"status":"accepted","id":"${id}"}` });
      else done({ status: 503, text: '{"error":"not stored"}' });
    });
  }
}

function hasIds(body: Buffer): boolean {
  try {
    const event = JSON.parse(body.toString()) as Record<string, unknown> | null;
    const { event_type: type, team_id: team, user_id: user } = event ?? {};
    return typeof type === 'string' && isUuid(team) && isUuid(user);
  } catch {
    return false;
  }
}

function isUuid(value: unknown): boolean {
  return typeof value === 'string' && UUID.test(value);
}

type Done = (error: Error | null) => void;

/** An append-only file. What is appended while one write and its fdatasync run goes into the next, together. */
class GroupLog {
  readonly #file: number;
  #parts: Buffer[] = [];
  #waiting: Done[] = [];
  #busy = false;

  constructor(path: string) {
    this.#file = openSync(path, 'a');
  }

  /** A record is `ID LENGTH\n`, so many bytes, and a line break. @param done called when it is on disk */
  append(head: Buffer, body: Buffer, done: Done): void {
    this.#parts.push(head, body, END);
    this.#waiting.push(done);
    if (this.#busy) return;
    this.#busy = true;
    // What this turn of the event loop still brings goes along.
    setImmediate(() => this.#write());
  }

  #write(): void {
    const parts = this.#parts;
    const waiting = this.#waiting;
    this.#parts = [];
    this.#waiting = [];
    const settle = (error: Error | null): void => {
      for (const done of waiting) done(error);
      if (this.#waiting.length > 0) this.#write();
      else this.#busy = false;
    };
    const all = Buffer.concat(parts);
    write(this.#file, all, (error, written) => {
      if (error !== null) settle(error);
      else if (written !== all.length) settle(new Error('the disk is full'));
      else fdatasync(this.#file, settle);
    });
  }
}

const END = Buffer.from('\n');
