import { describe, expect, test } from 'vitest';
import { formatTarget, parseTarget, type Route } from '../../../src/core/route.ts';
import { NO_ROUTES, type RouteEra, type RouteRecord } from '../../../src/core/route-record.ts';
import { AcceptedRoutes } from '../../../src/deliver/routes/accepted.ts';

const to = (match: string, ...sinks: string[]): Route => ({ match: [match], to: sinks.map(parseTarget) });
const era = (after: number, ...routes: Route[]): RouteEra => ({ after, tables: [routes] });

const takesAll = (record: Partial<RouteRecord>): boolean =>
  new AcceptedRoutes({ ...NO_ROUTES, ...record }).takesAll('a');

function routed(record: Partial<RouteRecord>) {
  const accepted = new AcceptedRoutes({ ...NO_ROUTES, ...record });
  return (seq: number, type: string, only?: readonly string[]): string[] =>
    accepted.targetsOf({ seq, type, handling: only === undefined ? {} : { only } }).map(formatTarget);
}

test('an event goes by the routes it was accepted under, whatever came later', () => {
  const targets = routed({
    eras: [era(0, to('labtest.', 'b'), to('*', 'a')), era(50, to('*', 'a')), era(60)],
  });
  expect(targets(50, 'labtest.x')).toEqual(['b']);
  expect(targets(51, 'labtest.x')).toEqual(['a']);
  expect(targets(1, 'daily.x')).toEqual(['a']);
  expect(targets(61, 'daily.x')).toEqual([]);
});

test('an era begins before its events, also where the first one that is known is younger than them', () => {
  const accepted = new AcceptedRoutes({ ...NO_ROUTES, eras: [era(50, to('*', 'a')), era(60)] });
  expect([1, 50, 51, 60, 61].map((seq) => accepted.eraOf(seq))).toEqual([0, 0, 50, 50, 60]);
});

test('what an event says of itself comes first', () => {
  const targets = routed({ eras: [era(0, to('*', 'a'))] });
  expect(targets(1, 't', ['c:place'])).toEqual(['c:place']);
  expect(targets(1, 't', [])).toEqual([]);
});

test('the place inside a sink is the one of now, where the routes of now name that sink', () => {
  const targets = routed({
    eras: [
      era(0, to('labtest.', 'hubs:typo', 'a'), to('*', 'hubs:other')),
      era(9, to('labtest.', 'hubs:right')),
    ],
  });
  expect(targets(9, 'labtest.x')).toEqual(['hubs:right', 'a']);
  expect(targets(9, 'daily.x')).toEqual(['hubs:other']);
});

test('a sink that continues for another has its events up to then, also after a name is used again', () => {
  const targets = routed({
    eras: [era(0, to('*', 'b:x')), era(10, to('*', 'c')), era(20, to('*', 'd', 'b'))],
    successors: [
      { upTo: 10, from: 'b', to: 'c' },
      { upTo: 20, from: 'c', to: 'd' },
    ],
  });
  expect(targets(5, 't')).toEqual(['d']);
  expect(targets(5, 't', ['b:y'])).toEqual(['d:y']);
  expect(targets(15, 't')).toEqual(['d']);
  expect(targets(25, 't')).toEqual(['d', 'b']);
  expect(targets(25, 't', ['b'])).toEqual(['b']);
});

test('it knows which sinks had everything', () => {
  expect(takesAll({ eras: [era(0, to('*', 'a')), era(3, to('x', 'a', 'b'), to('*', 'a'))] })).toBe(true);
  expect(takesAll({ eras: [era(0, to('*', 'b')), era(3, to('*', 'a'))] })).toBe(false);
  expect(takesAll({ eras: [era(0, to('x', 'a'))] })).toBe(false);
  expect(takesAll({ eras: [era(0, to('*', 'a'))], forgotten: true })).toBe(false);
  const renamed = { upTo: 3, from: 'b', to: 'a' };
  expect(takesAll({ eras: [era(0, to('*', 'b')), era(3, to('*', 'a'))], successors: [renamed] })).toBe(true);
});

const fields = { type: 'event_type', team: 'team_id', user: 'user_id', clientUser: 'client_user_id' };
const hiding = (path: string) => ({ redact: [path], fields });
const target = (sink: string, ...redactions: ReturnType<typeof hiding>[]) => ({
  sink,
  destination: null,
  ...(redactions.length === 0 ? {} : { redactions }),
});
const record = (...eras: RouteEra[]) => ({ eras, successors: [], left: [], forgotten: false });
const leaves = (accepted: AcceptedRoutes, seq: number, type: string, handling = {}) =>
  accepted
    .targetsOf({ seq, type, handling })
    .map(({ sink, redactions = [] }) => [sink, redactions.flatMap(({ redact }) => redact)]);

describe('what leaves for a target', () => {
  const before = { match: ['*'], to: [target('a', hiding('/old')), target('b')] };

  test('is what the routes of now say, or where these do not name the sink those of then, and all they say of it', () => {
    const now = [
      { match: ['x.'], to: [target('a', hiding('/new'))] },
      { match: ['*'], to: [target('b', hiding('/b'))] },
    ];
    const accepted = new AcceptedRoutes(record(era(0, before), era(10, ...now)));
    expect(leaves(accepted, 5, 'x.1')).toEqual([
      ['a', ['/new']],
      ['b', ['/b']],
    ]);
    expect(leaves(accepted, 5, 'y.1')).toEqual([
      ['a', ['/old', '/new']],
      ['b', ['/b']],
    ]);
    expect(leaves(accepted, 11, 'x.1')).toEqual([['a', ['/new']]]);
  });

  test('is no more than any route has let out since, where none leads there any more', () => {
    const eras = [
      era(0, before),
      era(10, { match: ['x.'], to: [target('a', hiding('/since'))] }, { match: ['*'], to: [target('b')] }),
      era(20, { match: ['z.'], to: [target('a', hiding('/today'))] }),
    ];
    const accepted = new AcceptedRoutes(record(...eras));
    expect(leaves(accepted, 5, 'x.1')).toEqual([
      ['a', ['/old', '/since', '/today']],
      ['b', []],
    ]);
    expect(leaves(accepted, 15, 'x.1')).toEqual([['a', ['/since', '/today']]]);
    expect(leaves(accepted, 15, 'y.1')).toEqual([['b', []]]);
  });

  test('follows a sink to its new name', () => {
    const now = { match: ['*'], to: [target('c', hiding('/new')), target('b')] };
    const successors = [{ upTo: 10, from: 'a', to: 'c' }];
    const renamed = new AcceptedRoutes({ ...record(era(0, before), era(10, now)), successors });
    expect(leaves(renamed, 5, 'y')).toEqual([
      ['c', ['/new']],
      ['b', []],
    ]);
    // A dead letter of the old name, when no route leads there any more.
    const elsewhere = { match: ['*'], to: [target('b')] };
    const gone = new AcceptedRoutes({ ...record(era(0, before), era(10, elsewhere)), successors });
    expect(leaves(gone, 5, 'y', { only: ['a'] })).toEqual([['c', ['/old']]]);
  });

  test('is the strictest there is for a target that no route names for the event', () => {
    const now = [
      { match: ['x.'], to: [target('a', hiding('/new'))] },
      { match: ['*'], to: [target('b')] },
    ];
    const accepted = new AcceptedRoutes(record(era(0, before), era(10, ...now)));
    expect(leaves(accepted, 11, 'x.1', { only: ['a'] })).toEqual([['a', ['/new']]]);
    expect(leaves(accepted, 11, 'y.1', { only: ['a:elsewhere', 'b'] })).toEqual([
      ['a', ['/new', '/old']],
      ['b', []],
    ]);
    const carried = { only: ['b', 'a'], without: { b: [hiding('/then')] } };
    expect(leaves(accepted, 11, 'z', carried)).toEqual([
      ['b', []],
      ['a', ['/new', '/old']],
    ]);
    expect(leaves(accepted, 11, 'x.1', carried)).toEqual([
      ['b', ['/then']],
      ['a', ['/new']],
    ]);
    const own = { only: ['b:place'], redactions: [hiding('/own'), hiding('/own')] };
    expect(leaves(accepted, 11, 'y.1', own)).toEqual([['b', ['/own']]]);
  });
});
