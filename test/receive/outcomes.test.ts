import { describe, expect, it } from 'vitest';
import { CATALOGUE, MillraceError } from '../../src/core/errors.ts';
import { createValidator } from '../../src/receive/validate/envelope.ts';
import { createVerifier } from '../../src/receive/verify/registry.ts';
import { signStandardWebhooks } from '../../src/receive/verify/sign-standard-webhooks.ts';
import { ENVELOPE } from '../support/defaults.ts';
import { TEAM } from '../support/events.ts';
import {
  deliver,
  EVENT,
  head,
  RawClient,
  SECRET,
  signed,
  start,
  verifierOf,
  wholeRequest,
} from './support.ts';

const INVALID = Buffer.from('{"event_type":"x"}');
const OTHER_SECRET = `whsec_${Buffer.alloc(24, 8).toString('base64')}`;

/** The event, of another team. */
const of = (team: string): Buffer => Buffer.from(EVENT.toString().replace(TEAM, team));

describe('a delivery', () => {
  it('of a team that the matching secret is not bound to is refused as a wrong signature', async () => {
    const other = '6b0e9a52-0000-4000-8000-000000000002';
    const verifier = createVerifier({
      scheme: 'standard-webhooks',
      secrets: [SECRET, OTHER_SECRET],
      teams: [[TEAM.toUpperCase()], null],
      tolerance: 300_000,
    });
    const { url, accepted, quarantined, outcomes } = await start({ verifier });
    expect((await deliver(url)).status).toBe(202);
    expect(await deliver(url, of(other))).toMatchObject({ status: 401, json: { code: 'signature_foreign' } });
    expect(outcomes.at(-1)?.info.secret).toBeNull();
    // The last of two counts, as for JSON.parse.
    const twice = Buffer.from(EVENT.toString().replace(/}$/, `,"team_id":"${other}"}`));
    const escaped = of(other.replace('6', String.raw`\u0036`));
    for (const body of [twice, escaped]) expect((await deliver(url, body)).status).toBe(401);
    expect(accepted).toHaveLength(1);
    const headers = signStandardWebhooks(OTHER_SECRET, 'msg_other', Date.now(), of(other), 'svix');
    expect((await deliver(url, of(other), { headers })).status).toBe(202);
    // What names no team speaks for none.
    expect((await deliver(url, INVALID)).json).toMatchObject({ status: 'quarantined' });
    expect(quarantined.every(({ reasons }) => reasons.length > 0)).toBe(true);
  });

  it('is accepted once and a duplicate after that', async () => {
    const { url, accepted, outcomes } = await start();
    const first = await deliver(url, EVENT, { id: 'msg_a' });
    expect(first).toMatchObject({ status: 202, json: { status: 'accepted', id: 'msg_a' } });
    expect(first.headers.get('content-type')).toBe('application/json');
    expect(await deliver(url, EVENT, { id: 'msg_a' })).toMatchObject({
      status: 200,
      json: { status: 'duplicate', id: 'msg_a' },
    });
    expect(accepted).toHaveLength(1);
    expect(accepted[0]).toMatchObject({
      id: 'msg_a',
      source: 'webhooks',
      type: 'daily.data.meal.created',
      clientUser: null,
    });
    expect(Object.keys(accepted[0]!.headers)).toEqual(['svix-id', 'svix-timestamp', 'svix-signature']);
    expect(outcomes[0]).toMatchObject({
      outcome: { kind: 'accepted' },
      info: { bodyBytes: EVENT.length, secret: 0, type: 'daily.data.meal.created' },
    });
  });

  it('is quarantined with all reasons when it is invalid, and answered so that the sender is content', async () => {
    const { url, quarantined } = await start();
    expect(await deliver(url, INVALID, { id: 'q' })).toMatchObject({
      status: 202,
      json: { status: 'quarantined', id: 'q', code: 'team_missing' },
    });
    expect(await deliver(url, INVALID, { id: 'q' })).toMatchObject({
      status: 200,
      json: { status: 'duplicate' },
    });
    expect(quarantined.map((entry) => entry.reasons.map((reason) => reason.code))).toEqual([
      ['team_missing', 'user_missing', 'client_user_missing'],
    ]);
  });

  it('is answered 422 when invalid, where that is wanted', async () => {
    const { url, quarantined } = await start({ quarantineStatus: 422 });
    expect(await deliver(url, INVALID, { id: 'q' })).toMatchObject({
      status: 422,
      json: {
        status: 422,
        code: 'unfit',
        id: 'q',
        reasons: ['team_missing', 'user_missing', 'client_user_missing'],
      },
    });
    expect(quarantined).toHaveLength(1);
  });

  it('fault 31: passes whatever its type and values are', async () => {
    const { url, accepted } = await start();
    const body = Buffer.from(EVENT.toString().replace('daily.data.meal.created', 'never.heard.of'));
    expect((await deliver(url, body)).status).toBe(202);
    expect(accepted[0]?.body.equals(body)).toBe(true);
  });
});

describe('a refusal', () => {
  it('fault 19: is 401 for a bad, missing or stale signature, and nothing is kept', async () => {
    const { url, accepted, quarantined } = await start();
    const stale = String(Math.floor(Date.now() / 1000) - 3600);
    const cases: [Record<string, string>, string][] = [
      [{ 'svix-signature': 'v1,AAAA' }, 'signature_invalid'],
      [{ 'svix-signature': '' }, 'signature_missing'],
      [{ 'svix-timestamp': stale }, 'timestamp_too_old'],
      [{ 'svix-timestamp': 'soon' }, 'timestamp_invalid'],
      [{ 'svix-timestamp': '99999999999' }, 'timestamp_too_new'],
    ];
    for (const [headers, code] of cases) {
      const { status, json, headers: got } = await deliver(url, EVENT, { headers });
      expect({ status, json }).toMatchObject({ status: 401, json: { status: 401, code } });
      expect(Object.keys(json)).toEqual(['type', 'title', 'status', 'code', 'detail']);
      expect(got.get('content-type')).toBe('application/problem+json');
    }
    expect((await deliver(url, EVENT, { sent: INVALID })).json['code']).toBe('signature_invalid');
    expect([...accepted, ...quarantined]).toEqual([]);
  });

  it('is 404 for another path and 405 for another method', async () => {
    const { url, port, outcomes } = await start();
    for (const method of ['GET', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
      const response = await fetch(url, { method });
      expect([response.status, response.headers.get('allow')]).toEqual([405, 'POST']);
      expect(await response.json()).toMatchObject({ code: 'method_not_allowed' });
    }
    expect((await fetch(url, { method: 'HEAD' })).status).toBe(405);
    for (const path of ['', '/', '/webhooks/more', '/webhooksx', '/%', '/%ff']) {
      const response = await fetch(`http://127.0.0.1:${port}${path}`, { method: 'POST', body: '{}' });
      expect(response.status).toBe(404);
      expect(await response.json()).toMatchObject({ code: 'not_found', status: 404 });
      expect(response.headers.get('x-powered-by')).toBe(null);
    }
    const client = new RawClient(port);
    client.socket.write(head({ 'content-length': 0 }, 'POST http://[::: HTTP/1.1'));
    await client.until(/not_found/);
    expect(client.status).toBe(404);
    expect(outcomes).toHaveLength(13);
  });

  it('is not for another spelling of the path', async () => {
    const { port, accepted } = await start({ path: '/in(1)/*:x' });
    for (const path of ['/in(1)/*:x', '/in(1)/*:x?a=b', '/in(1)/*:x/', '/IN(1)/*:x']) {
      expect((await deliver(`http://127.0.0.1:${port}${path}`)).status).toBe(202);
    }
    const client = new RawClient(port);
    const headers = { ...signed(EVENT), 'content-length': EVENT.length };
    client.socket.write(head(headers, 'POST http://x/in(1)/*:x HTTP/1.1') + EVENT.toString());
    await client.until(/accepted/);
    expect(accepted).toHaveLength(5);
  });

  it('is 415 for what is not JSON; a missing media type passes', async () => {
    const { url, port } = await start();
    const statusOf = async (type: string): Promise<number> =>
      (await deliver(url, EVENT, { headers: { 'content-type': type } })).status;
    for (const type of [
      'application/json; charset=utf-8',
      'Application/JSON',
      'application/cloudevents+json',
    ]) {
      expect(await statusOf(type)).toBe(202);
    }
    for (const type of [
      'text/plain',
      'application/jsonx',
      'application/x-www-form-urlencoded',
      'json',
      '+json',
    ]) {
      expect(await statusOf(type)).toBe(415);
    }
    const client = new RawClient(port);
    client.socket.write(wholeRequest());
    await client.until(/accepted/);
    expect(client.status).toBe(202);
  });

  it('is 503 with Retry-After while the backlog is full, before a body is read', async () => {
    const { url, outcomes } = await start({ isBacklogFull: () => true, limits: { retryAfter: 2500 } });
    const { status, json, headers } = await deliver(url);
    expect([status, json['code'], headers.get('retry-after')]).toEqual([503, 'backlog_full', '3']);
    expect(outcomes[0]?.info.bodyBytes).toBe(0);
  });

  it('fault 6: is 503 with Retry-After when the journal is full or fails, and 500 for a surprise', async () => {
    let error = new Error();
    const fail = (): Promise<never> => Promise.reject(error);
    const { url, errors } = await start({ ingest: { accept: fail, quarantine: fail } });
    for (const body of [EVENT, INVALID]) {
      for (const code of ['journal_full', 'journal_failed'] as const) {
        error = new MillraceError(code, 'x');
        const { status, json, headers } = await deliver(url, body);
        expect([status, json['code'], headers.get('retry-after')]).toEqual([503, code, '10']);
      }
      error = new Error('secret detail');
      const { status, json } = await deliver(url, body);
      expect([status, json['code']]).toEqual([500, 'internal']);
      expect(JSON.stringify(json)).not.toContain('secret detail');
    }
    expect(errors).toHaveLength(2);
  });

  it('has the status and title of the catalogue', async () => {
    const { url } = await start();
    const { json } = await deliver(url, EVENT, { headers: { 'content-type': 'text/plain' } });
    const { status, title } = CATALOGUE.media_type_unsupported;
    expect(json).toMatchObject({ status, title, type: 'urn:millrace:problem:media_type_unsupported' });
  });
});

describe('the running receiver', () => {
  it('fault 18: takes new secrets and rules without a restart', async () => {
    const { url, receiver } = await start({ verifier: verifierOf(SECRET) });
    expect((await deliver(url)).status).toBe(202);
    receiver.replace({ verifier: verifierOf(OTHER_SECRET, SECRET) });
    expect((await deliver(url)).status).toBe(202);
    receiver.replace({ verifier: verifierOf(OTHER_SECRET) });
    expect((await deliver(url)).status).toBe(401);
    receiver.replace({ verifier: verifierOf(SECRET) });
    receiver.replace({ validate: createValidator({ ...ENVELOPE, require: [] }) });
    expect((await deliver(url, INVALID)).json).toMatchObject({ status: 'accepted' });
    receiver.replace({ quarantineStatus: 422 });
    expect((await deliver(url, Buffer.from('5'))).status).toBe(422);
  });

  it('survives a hook that throws', async () => {
    const errors: unknown[] = [];
    const { url, receiver } = await start({
      onOutcome: () => {
        throw new Error('hook');
      },
      onError: (error) => errors.push(error),
    });
    expect((await deliver(url)).status).toBe(202);
    expect(errors).toHaveLength(1);
    expect(receiver.inFlight).toBe(0);
  });

  it('names the address it cannot listen on', async () => {
    const { port } = await start();
    await expect(start({ port })).rejects.toMatchObject({
      code: 'address_unavailable',
      detail: expect.stringContaining(`127.0.0.1:${port}`),
    });
  });
});
