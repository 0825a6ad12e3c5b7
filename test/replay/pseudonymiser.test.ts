import { describe, expect, test } from 'vitest';
import { pseudonymiserOf, rewriteBody } from '../../src/replay/pseudonymiser.ts';
import { makeEvent, TEAM, USER } from '../support/events.ts';

const FIELDS = { team: 'team_id', user: 'user_id', clientUser: 'client_user_id' };
const KEY = Buffer.from('made-up key of the tests only');
const OTHER_USER = '6b0e9a52-0000-4000-8000-0000000000bb';
const CLIENT = 'made-up-customer-7';

function event(data: unknown) {
  const body = {
    event_type: 'daily.data.meal.created',
    data,
    team_id: TEAM,
    user_id: USER,
    client_user_id: CLIENT,
  };
  return makeEvent({ clientUser: CLIENT, body: Buffer.from(JSON.stringify(body)) });
}

const pseudonymiser = (options: Partial<Parameters<typeof pseudonymiserOf>[0]> = {}) =>
  pseudonymiserOf({ users: new Map(), key: KEY, fields: FIELDS, ...options });

describe('pseudonyms', () => {
  test('no id is left, in the envelope or anywhere in the body, and all else is as it was', () => {
    const original = event({
      id: 'made-up-meal',
      user_id: USER,
      owners: [{ client_user_id: CLIENT, user_id: OTHER_USER }],
      link: `https://made.up/users/${USER.toUpperCase()}/meals?team=${TEAM}`,
      [USER]: { note: `${CLIENT} stays inside a text` },
      amount: 1.1,
    });
    const changed = pseudonymiser()(original);
    const text = changed.body.toString();
    for (const id of [TEAM, USER, OTHER_USER]) expect(text.toLowerCase()).not.toContain(id);
    const { data, ...envelope } = JSON.parse(text) as { data: Record<string, unknown> };
    expect(envelope).toEqual({
      event_type: 'daily.data.meal.created',
      team_id: changed.team,
      user_id: changed.user,
      client_user_id: changed.clientUser,
    });
    expect(data).toMatchObject({ id: 'made-up-meal', user_id: changed.user, amount: 1.1 });
    expect(data['owners']).toMatchObject([{ client_user_id: changed.clientUser }]);
    expect(Object.keys(data)).toContain(changed.user);
    expect(changed).toMatchObject({ id: original.id, type: original.type, headers: {} });
  });

  test('they are the same in every event, of the form of the id, and another key gives others', () => {
    const [one, two] = [pseudonymiser()(event({})), pseudonymiser()(event({ more: true }))];
    expect([one.team, one.user, one.clientUser]).toEqual([two.team, two.user, two.clientUser]);
    expect(one.user).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(one.clientUser).toMatch(/^pseudonym-[0-9a-f]{32}$/);
    const other = pseudonymiser({ key: Buffer.from('another made-up key') })(event({}));
    expect([other.team, other.user, other.clientUser]).not.toContain(one.user);
    expect(other.team).not.toBe(one.team);
  });

  test('a user in capitals is the same user, and an event without ids stays without', () => {
    const capital = pseudonymiser()(makeEvent({ user: USER.toUpperCase() }));
    expect(capital.user).toBe(pseudonymiser()(makeEvent()).user);
    const none = pseudonymiser()(
      makeEvent({ team: null, user: null, clientUser: null, body: Buffer.from('{"event_type":"x"}') }),
    );
    expect(none).toMatchObject({ team: null, user: null, clientUser: null });
  });

  test.each([
    ['team', { team: TEAM, user: null, clientUser: null }],
    ['client user', { team: null, user: null, clientUser: CLIENT }],
  ])('an id that only the envelope has gets one too: a %s', (_, ids) => {
    const headers = { 'x-made-up-id': TEAM };
    const changed = pseudonymiser()(makeEvent({ ...ids, headers, body: Buffer.from('{"n":1}') }));
    expect(JSON.stringify(changed)).not.toContain(TEAM);
    expect(JSON.stringify(changed)).not.toContain(CLIENT);
  });

  test('an unreadable body is refused, and the message has nothing of it', () => {
    for (const text of ['{"user_id":"secret', 'secret', '["secret"]', '{} secret', '']) {
      const broken = makeEvent({ body: Buffer.from(text) });
      expect(() => pseudonymiser()(broken)).toThrow(/JSON/);
      expect(() => pseudonymiser()(broken)).not.toThrow(/secret/);
    }
  });
});

describe('mapped users', () => {
  test('change everywhere; other users and ids do not', () => {
    const map = pseudonymiser({ key: null, users: new Map([[USER, OTHER_USER]]) });
    const changed = map(event({ user_id: USER, link: `x/${USER}` }));
    expect(changed).toMatchObject({ team: TEAM, user: OTHER_USER, clientUser: CLIENT, headers: {} });
    expect(JSON.parse(changed.body.toString())).toMatchObject({
      team_id: TEAM,
      user_id: OTHER_USER,
      data: { user_id: OTHER_USER, link: `x/${OTHER_USER}` },
    });
    const untouched = makeEvent({ user: TEAM, body: Buffer.from('{"a": 1.10}') });
    expect(map(untouched)).toBe(untouched);
  });

  test('are not given a pseudonym beside', () => {
    const both = pseudonymiser({ users: new Map([[USER, OTHER_USER]]) });
    expect(both(event({}))).toMatchObject({ user: OTHER_USER });
    expect(both(event({})).team).not.toBe(TEAM);
  });
});

test('what is not replaced keeps its bytes: spaces, escapes, numbers, repeated names', () => {
  const text = '{ "a" : "x\\u0041\\/", "a":1.10, "b":[ -0 , 9007199254740993 ],"c":"\\ud800", "d":"ü" }';
  const same = rewriteBody(Buffer.from(text), (part) => part);
  expect(same.toString()).toBe(text);
  const changed = rewriteBody(Buffer.from(text), (part) => (part === 'xA/' ? 'new "text"' : part));
  expect(changed.toString()).toBe(text.replace('"x\\u0041\\/"', '"new \\"text\\""'));
});
