import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createValidator, type Validation } from '../../../src/receive/validate/envelope.ts';
import { ENVELOPE } from '../../support/defaults.ts';

const TEAM = '1B671A64-40d5-491e-99b0-da01ff1f3341';
const USER = '7b671a64-40d5-091e-09b0-da01ff1f3342';
const validate = createValidator(ENVELOPE);
const event = (more: object = {}): object => ({
  event_type: 'daily.data.meal.created',
  team_id: TEAM,
  user_id: USER,
  client_user_id: 'customer-patient-123',
  data: {},
  ...more,
});
const check = (value: unknown, validator = validate): Validation =>
  validator(Buffer.from(JSON.stringify(value)));
const codes = (result: Validation): string[] =>
  result.isValid ? [] : result.reasons.map((reason) => reason.code);

describe('a valid event', () => {
  it('has its envelope read as it was written', () => {
    expect(check(event())).toStrictEqual({
      isValid: true,
      envelope: {
        type: 'daily.data.meal.created',
        team: TEAM,
        user: USER,
        clientUser: 'customer-patient-123',
      },
    });
  });

  it('fault 31: may be of any type and carry any value', () => {
    for (const event_type of ['a', 'no.such.type', 'raw.x.y', 'x'.repeat(256), 'tägliche.dätä']) {
      expect(check(event({ event_type, data: { status: 'new_enum_value' } })).isValid).toBe(true);
    }
  });

  it('has a client user id of any text, or null', () => {
    for (const client_user_id of [
      null,
      '',
      '01ARZ3NDEKTSV4RRFFQ69G5FAV',
      '../../x',
      'CON',
      'a\u0000b',
      'x'.repeat(512),
    ]) {
      expect(codes(check(event({ client_user_id })))).toEqual([]);
    }
  });
});

const bare = (event_type: string): object => ({ event_type });

describe('what is required', () => {
  it('depends on the type; the first rule that matches decides', () => {
    expect(codes(check(bare('message.attempt.exhausted')))).toEqual([]);
    expect(codes(check(bare('labtest.match_review.created')))).toEqual(['team_missing']);
    expect(codes(check({ ...bare('labtest.match_review.created'), team_id: TEAM }))).toEqual([]);
    expect(codes(check(bare('labtest.order.created')))).toEqual([
      'team_missing',
      'user_missing',
      'client_user_missing',
    ]);
  });

  it('is nothing but a type when no rule matches', () => {
    const lax = createValidator({ ...ENVELOPE, require: [] });
    expect(check({ event_type: 'x' }, lax).isValid).toBe(true);
    expect(codes(check({}, lax))).toEqual(['type_missing']);
  });

  it('can be read from other keys, and only from keys of the event itself', () => {
    const fields = { type: 'constructor', team: '__proto__', user: 'toString', clientUser: 'c' };
    const odd = createValidator({ ...ENVELOPE, ...fields });
    expect(codes(odd(Buffer.from('{}')))).toEqual([
      'type_missing',
      'team_missing',
      'user_missing',
      'client_user_missing',
    ]);
    const body = Buffer.from(`{"constructor":"t","__proto__":"${TEAM}","toString":"${USER}","c":null}`);
    expect(odd(body)).toMatchObject({ isValid: true, envelope: { type: 't', team: TEAM, user: USER } });
  });
});

describe('an invalid event', () => {
  it('has all its reasons, and as much of the envelope as could be read', () => {
    const result = check({ event_type: 7, team_id: 'acme', user_id: null, client_user_id: 5 });
    expect(codes(result)).toEqual([
      'type_malformed',
      'team_malformed',
      'user_missing',
      'client_user_malformed',
    ]);
    expect(result.envelope).toEqual({ type: '', team: 'acme', user: null, clientUser: null });
  });

  it('has a malformed type', () => {
    for (const event_type of ['', 'x'.repeat(257), 'a\nb', 'a\u0000', '\u009b31m', [], {}, true, '\ud800']) {
      expect(codes(check(event({ event_type })))).toEqual(['type_malformed']);
    }
  });

  it('fault 27: has ids that are none', () => {
    for (const id of [
      '../../x',
      'a\u0000',
      'CON',
      'x'.repeat(10_240),
      5,
      [],
      `${USER} `,
      USER.replace('-', ''),
    ]) {
      expect(codes(check(event({ user_id: id })))).toEqual(['user_malformed']);
      expect(codes(check(event({ team_id: id })))).toEqual(['team_malformed']);
    }
    for (const id of ['x'.repeat(513), 'x'.repeat(10_240), {}, 5, false, '\udfff']) {
      const result = check(event({ client_user_id: id }));
      expect(codes(result)).toEqual(['client_user_malformed']);
      expect(result.envelope.clientUser).toBe(null);
    }
  });

  it('has a user id that is text where text is allowed', () => {
    const text = createValidator({ ...ENVELOPE, userIds: 'text' });
    expect(check(event({ user_id: 'u-1' }), text).isValid).toBe(true);
    expect(check(event({ team_id: 'acme' }), text).isValid).toBe(true);
    const acme = createValidator({ ...ENVELOPE, userIds: 'text', teams: ['acme'] });
    expect(codes(check(event({ team_id: 'ACME' }), acme))).toEqual(['team_foreign']);
    expect(codes(check(event({ user_id: '' }), text))).toEqual(['user_malformed']);
    expect(codes(check(event({ user_id: 'x'.repeat(257) }), text))).toEqual(['user_malformed']);
  });

  it('comes from a team that is not on the list', () => {
    const ours = createValidator({ ...ENVELOPE, teams: [TEAM.toLowerCase()] });
    expect(check(event(), ours).isValid).toBe(true);
    expect(codes(check(event({ team_id: USER }), ours))).toEqual(['team_foreign']);
  });

  it('fault 24: is not UTF-8, has a mark, is empty, is no JSON, is no object', () => {
    const text = JSON.stringify(event());
    expect(codes(validate(Buffer.alloc(0)))).toEqual(['empty']);
    const marked = validate(Buffer.from(`\ufeff${text}`));
    expect(codes(marked)).toEqual(['bom']);
    expect(marked.envelope.type).toBe('daily.data.meal.created');
    const broken = Buffer.from(text);
    broken[text.indexOf('patient')] = 0xff;
    expect(codes(validate(broken))).toEqual(['not_utf8']);
    for (const bad of ['{', 'nope', '{"a":1}x', ' ', '{"a":1,}', 'NaN']) {
      expect(codes(validate(Buffer.from(bad)))).toEqual(['not_json']);
    }
    for (const bad of ['null', '5', '"x"', '[]', '[{}]', 'true']) {
      expect(codes(validate(Buffer.from(bad)))).toEqual(['not_object']);
    }
  });

  it('fault 26: is nested too deeply', () => {
    const nested = (levels: number): Buffer =>
      Buffer.from(JSON.stringify(event()).replace('{}', '['.repeat(levels) + ']'.repeat(levels)));
    expect(codes(validate(nested(127)))).toEqual([]);
    expect(codes(validate(nested(128)))).toEqual(['too_deep']);
    expect(codes(validate(nested(200_000)))).toEqual(['too_deep']);
    expect(codes(validate(Buffer.from('{"a":'.repeat(200_000))))).toEqual(['too_deep']);
    expect(
      codes(
        check(
          event({ data: { text: '[{"\\'.repeat(1000), list: Array.from({ length: 1000 }, () => [{}]) } }),
        ),
      ),
    ).toEqual([]);
  });
});

describe('whatever it is given', () => {
  it('fault 25: leaves prototypes and the bytes alone', () => {
    const body = Buffer.from(
      `{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"team_id":"x","team_id":"${TEAM}",` +
        `"event_type":"a","user_id":"${USER}","client_user_id":null,"data":[9007199254740993,-0,1E400,"\\ud800"]}`,
    );
    const before = Buffer.from(body);
    expect(validate(body)).toMatchObject({ isValid: true, envelope: { team: TEAM } });
    expect(body.equals(before)).toBe(true);
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });

  it('answers, never throws, and measures depth as the parser does', () => {
    const deep = (value: unknown): number =>
      typeof value === 'object' && value !== null ? 1 + Math.max(0, ...Object.values(value).map(deep)) : 0;
    const shallow = createValidator({ ...ENVELOPE, maxDepth: 3, require: [] });
    fc.assert(
      fc.property(fc.json({ maxDepth: 6 }), fc.uint8Array(), (json, bytes) => {
        validate(Buffer.from(bytes));
        expect(codes(shallow(Buffer.from(json))).includes('too_deep')).toBe(deep(JSON.parse(json)) > 3);
      }),
    );
  });
});
