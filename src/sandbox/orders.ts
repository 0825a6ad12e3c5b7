import type { Events } from './events.ts';
import { INTERPRETATIONS, type Order, orderJson } from './order.ts';
import { type LabAccount, LABS, type Labs, type LabTest } from './made-up-labs.ts';
import { Refusal } from './check.ts';
import { pick, randomOf, uuidOf, type Name } from './seeded.ts';
import type { Team } from './teams.ts';
import type { Timers } from './timers.ts';
import type { User, Users } from './users.ts';

const HOUR = 3_600_000;

/** The statuses of an order, each followed by the next after its hours. Every 7th or 11th order has a problem too. */
const COURSE = [
  { status: 'received.testkit.ordered', hours: 1 },
  { status: 'received.testkit.requisition_created', hours: 24 },
  { status: 'collecting_sample.testkit.transit_customer', hours: 48 },
  { status: 'collecting_sample.testkit.made_up_not_listed', hours: 1, unknown: true },
  { status: 'collecting_sample.testkit.problem_in_transit_customer', hours: 24, every: 7 },
  { status: 'collecting_sample.testkit.problem_in_transit_lab', hours: 24, every: 11 },
  { status: 'sample_with_lab.testkit.delivered_to_lab', hours: 24 },
  { status: 'sample_with_lab.testkit.partial_results', hours: 12, partial: true },
  { status: 'completed.testkit.completed', hours: 0 },
] as const;

interface OrdersOptions {
  readonly timers: Timers;
  readonly events: Events;
  readonly labs: Labs;
  readonly users: Users;
  readonly seed: Name;
  readonly unknownValues: boolean;
}

export interface NewOrder {
  readonly user: User;
  readonly test: LabTest;
  readonly accountId: string | null;
  readonly clinicalNotes: string | null;
  /** With a reason the order replaces the user's last one. */
  readonly updateReason: string | null;
  readonly way: Order['way'];
}

export class Orders {
  readonly #world: OrdersOptions;
  #orders: Order[] = [];
  #made = 0;

  constructor(world: OrdersOptions) {
    this.#world = world;
    world.users.onErased((user) => {
      this.#orders = this.#orders.filter((order) => order.user !== user);
    });
  }

  /** The earlier order with the same key; null without one. @throws Refusal 409 when that was another request */
  repeated(team: Team, key: string | null, asked: string): Order | null {
    if (key === null) return null;
    const found = this.list(team.id).find((order) => order.key === key);
    if (found === undefined) return null;
    if (found.asked !== asked) throw new Refusal(409, 'The idempotency key was used for another order');
    return found;
  }

  /** @throws Refusal 400 when the account cannot be used */
  place(team: Team, wanted: NewOrder, key: string | null, asked: string): Order {
    const account = this.#accountFor(team, wanted);
    const notes = [account.notes, wanted.clinicalNotes].filter((note) => note !== null);
    const { seed, timers, events, labs } = this.#world;
    const number = (this.#made += 1);
    const order: Order = {
      id: uuidOf(seed, 'order', number),
      number,
      user: wanted.user,
      test: wanted.test,
      account,
      notes: notes.length === 0 ? null : notes.join('\n'),
      way: wanted.way,
      origin: wanted.updateReason === null ? 'initial' : 'recreation',
      createdAt: timers.stamp(),
      status: COURSE[0].status,
      interpretation: null,
      events: [{ status: COURSE[0].status, at: timers.stamp() }],
      key,
      asked,
      step: 0,
    };
    this.#orders.push(order);
    events.emit(order.user, 'labtest.order.created', orderJson(order, labs));
    this.#follow(order, team);
    return order;
  }

  /** @throws Refusal 404 */
  get(teamId: string, id: string): Order {
    const order = this.list(teamId).find((one) => one.id === id);
    if (order === undefined) throw new Refusal(404, 'Order not found');
    return order;
  }

  /** @throws Refusal 400 when the order is over */
  cancel(order: Order): void {
    if (isOver(order)) throw new Refusal(400, `The order is ${order.status.split('.')[0]}`);
    order.status = 'cancelled.testkit.cancelled';
    order.events = [...order.events, { status: order.status, at: this.#world.timers.stamp() }];
    this.#world.events.emit(order.user, 'labtest.order.updated', orderJson(order, this.#world.labs));
  }

  list(teamId: string): Order[] {
    return this.#orders.filter(({ user }) => user.teamId === teamId && !user.erased);
  }

  /**
   * The named account; else that of the replaced order, or with INCORRECT_LAB another one; else the first active one of
   * the test's lab.
   */
  #accountFor(team: Team, { user, test, accountId, updateReason, way }: NewOrder): LabAccount {
    const accounts = this.#world.labs.accountsOf(team.id);
    const fresh = (except: readonly (string | undefined)[]): LabAccount | undefined =>
      accounts.find(({ id, lab, status }) => lab === test.lab && status === 'active' && !except.includes(id));
    const replaced = updateReason === null ? [] : this.#orders;
    const before = replaced.findLast((order) => order.user === user)?.account;
    const named = accountId === null ? undefined : accounts.find(({ id }) => id === accountId);
    if (accountId !== null && named === undefined) throw new Refusal(404, 'Lab account not found');
    const carried = before?.lab === test.lab ? before : undefined;
    const account =
      named ?? (updateReason === 'INCORRECT_LAB' ? fresh([before?.id]) : (carried ?? fresh([])));
    if (account === undefined) throw new Refusal(400, 'No lab account for this order');
    if (account.lab !== test.lab)
      throw new Refusal(400, 'The lab test is not offered by the lab of the account');
    const usable = account.status === 'active' || (way === 'imported' && account.status === 'pending');
    if (!usable) throw new Refusal(400, `The lab account is ${account.status}`);
    return account;
  }

  #follow(order: Order, team: Team): void {
    const { timers, events, seed, labs, unknownValues } = this.#world;
    const current = COURSE[order.step];
    if (current === undefined || current.hours === 0) return;
    let next = order.step + 1;
    while (!this.#passes(COURSE[next], order, team)) next += 1;
    timers.after(current.hours * HOUR, () => {
      if (order.user.erased || isOver(order)) return;
      order.step = next;
      order.status = COURSE[next]?.status ?? order.status;
      order.events = [...order.events, { status: order.status, at: timers.stamp() }];
      const values = unknownValues ? ([...INTERPRETATIONS, 'made_up_not_listed'] as const) : INTERPRETATIONS;
      if (order.status.startsWith('completed.'))
        order.interpretation = pick<string>(randomOf(seed, 'result', order.number), values);
      events.emit(order.user, 'labtest.order.updated', orderJson(order, labs));
      if (order.interpretation === 'critical')
        events.emit(order.user, 'labtest.result.critical', criticalResult(order));
      this.#follow(order, team);
    });
  }

  #passes(step: (typeof COURSE)[number] | undefined, order: Order, team: Team): boolean {
    if (step === undefined) return true;
    if ('unknown' in step) return this.#world.unknownValues;
    if ('partial' in step) return team.features.partialResults;
    return 'every' in step ? order.number % step.every === 0 : true;
  }
}

function isOver({ status }: Order): boolean {
  return /^(completed|cancelled)\./.test(status);
}

/**
 * The lab test that an order is of: a listed one, or one made for the order.
 * @param wanted single markers, by id or provider id
 * @throws Refusal 400, 404
 */
export function orderedTest(labs: Labs, testIds: readonly string[], wanted: readonly Name[]): LabTest {
  const tests = labs.tests.filter(({ id }) => testIds.includes(id));
  if (tests.length < new Set(testIds).size) throw new Refusal(404, 'Lab test not found');
  const added = labs.markers.filter(
    ({ id, provider_id }) => wanted.includes(id) || wanted.includes(provider_id),
  );
  if (added.length < new Set(wanted).size) throw new Refusal(404, 'Marker not found');
  const [test] = tests;
  if (test !== undefined && tests.length === 1 && added.length === 0) return test;
  const places = [...tests.map(({ lab }) => lab), ...added.map(({ lab_id }) => LABS[lab_id - 1] ?? '')];
  const [lab = '', other] = new Set(places);
  if (lab === '' || other !== undefined)
    throw new Refusal(400, 'An order is of lab tests or markers of one lab');
  const markerIds = [...new Set([...tests.flatMap((one) => one.markerIds), ...added.map(({ id }) => id)])];
  const longestDays = Math.max(7, ...tests.map((one) => one.longestDays));
  const made = {
    id: uuidOf('order set', ...markerIds),
    name: 'Made-up order set',
    usualDays: 3,
    longestDays,
  };
  return { ...made, lab, markerIds, isForOneOrder: true };
}

function criticalResult({ id, number, user, status, interpretation, createdAt, events }: Order): object {
  return {
    order_id: id,
    sample_id: `made-up-sample-${number}`,
    status: status.split('.')[0],
    interpretation,
    team_id: user.teamId,
    user_id: user.id,
    created_at: createdAt,
    updated_at: events.at(-1)?.at,
  };
}
