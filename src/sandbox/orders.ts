import type { Events } from './events.ts';
import type { LabAccount, Labs, LabTest } from './made-up-labs.ts';
import { Refusal } from './refusal.ts';
import { pick, randomOf, uuidOf, type Name } from './seeded.ts';
import type { Shelf, State } from './state.ts';
import type { Team, Teams } from './teams.ts';
import type { Timers } from './timers.ts';
import type { User, Users } from './users.ts';

const HOUR = 3_600_000;

/** Modes in order; an unlucky order also passes one of the problems. Each is followed by the next after its hours. */
const COURSE = [
  { status: 'received.testkit.ordered', hours: 1 },
  { status: 'received.testkit.requisition_created', hours: 24 },
  { status: 'collecting_sample.testkit.transit_customer', hours: 48 },
  { status: 'collecting_sample.testkit.problem_in_transit_customer', hours: 24, every: 7 },
  { status: 'collecting_sample.testkit.problem_in_transit_lab', hours: 24, every: 11 },
  { status: 'sample_with_lab.testkit.delivered_to_lab', hours: 24 },
  { status: 'sample_with_lab.testkit.partial_results', hours: 12, partial: true },
  { status: 'completed.testkit.completed', hours: 0 },
] as const;

export const INTERPRETATIONS = ['normal', 'abnormal', 'critical'] as const;

export interface Order {
  readonly id: string;
  readonly number: number;
  readonly user: User;
  readonly test: LabTest;
  readonly account: LabAccount;
  readonly notes: string | null;
  readonly origin: 'created' | 'imported';
  readonly createdAt: string;
  status: string;
  interpretation: (typeof INTERPRETATIONS)[number] | null;
  /** The idempotency key it came with, and what was asked. */
  readonly key: string | null;
  readonly asked: string;
  /** Its place in the course, and since when, in sandbox time. */
  step: number;
  since: number;
}

type SavedOrder = Omit<Order, 'user' | 'test' | 'account'> & {
  readonly user: string;
  readonly test: string;
  readonly account: string;
};

export interface OrdersOptions {
  readonly timers: Timers;
  readonly events: Events;
  readonly labs: Labs;
  readonly teams: Teams;
  readonly users: Users;
  readonly seed: Name;
  readonly state: State;
}

export interface NewOrder {
  readonly user: User;
  readonly test: LabTest;
  readonly accountId: string | null;
  readonly clinicalNotes: string | null;
  readonly updateReason: string | null;
  readonly origin: Order['origin'];
}

/** Orders of all teams. */
export class Orders {
  readonly #world: OrdersOptions;
  /** By number. */
  readonly #orders: Shelf<Order>;

  /** Goes on with the orders of an earlier run. */
  constructor(world: OrdersOptions) {
    const { state, labs, users, teams } = world;
    this.#world = world;
    this.#orders = state.shelf<Order, SavedOrder>('orders', {
      dump: ({ user, test, account, ...rest }) => {
        return { ...rest, user: user.id, test: test.id, account: account.id };
      },
      load: ({ user: userId, test: testId, account: accountId, ...rest }) => {
        const user = users.known(userId);
        const test = labs.tests.find(({ id }) => id === testId);
        const account = labs.accounts.find(({ id }) => id === accountId);
        return user === null || test === undefined || account === undefined
          ? null
          : { ...rest, user, test, account };
      },
    });
    for (const order of this.#orders.all()) this.#follow(order, teams.get(order.user.teamId));
    users.onErased((user) => {
      for (const order of this.#orders.all()) if (order.user === user) this.#orders.delete(order.number);
    });
  }

  /**
   * The order that came of the same key before; null when there is none.
   * @throws Refusal 409 when the same key came with something else
   */
  repeated(team: Team, key: string | null, asked: string): Order | null {
    if (key === null) return null;
    const found = this.list(team.id).find((order) => order.key === key);
    if (found === undefined) return null;
    if (found.asked !== asked) throw new Refusal(409, 'The idempotency key was used for another order');
    return found;
  }

  /** @throws Refusal 400 when the account cannot take it */
  place(team: Team, wanted: NewOrder, key: string | null, asked: string): Order {
    const account = this.#accountFor(team, wanted);
    const notes = [account.notes, wanted.clinicalNotes].filter((note) => note !== null);
    const { state, seed, timers, events } = this.#world;
    const number = state.next('order');
    const order: Order = {
      id: uuidOf(seed, 'order', number),
      number,
      user: wanted.user,
      test: wanted.test,
      account,
      notes: notes.length === 0 ? null : notes.join('\n'),
      origin: wanted.origin,
      createdAt: timers.stamp(),
      status: COURSE[0].status,
      interpretation: null,
      key,
      asked,
      step: 0,
      since: timers.clock.now(),
    };
    this.#orders.put(number, order);
    events.emit(order.user, 'labtest.order.created', orderJson(order));
    this.#follow(order, team);
    return order;
  }

  list(teamId: string): Order[] {
    return this.#orders.all().filter(({ user }) => user.teamId === teamId && !user.erased);
  }

  /** The account that was named, unless it is the one of an incorrect lab; else the first active one of the lab. */
  #accountFor(team: Team, { test, accountId, updateReason, origin }: NewOrder): LabAccount {
    const accounts = this.#world.labs.accountsOf(team.id);
    const fresh = accountId === null || updateReason === 'INCORRECT_LAB';
    const account = fresh
      ? accounts.find(({ lab, status }) => lab === test.lab && status === 'active')
      : accounts.find(({ id }) => id === accountId);
    if (account === undefined) throw new Refusal(fresh ? 400 : 404, 'No lab account for this order');
    if (account.lab !== test.lab)
      throw new Refusal(400, 'The lab test is not offered by the lab of the account');
    const usable = account.status === 'active' || (origin === 'imported' && account.status === 'pending');
    if (!usable) throw new Refusal(400, `The lab account is ${account.status}`);
    return account;
  }

  #follow(order: Order, team: Team): void {
    const { timers, events, seed } = this.#world;
    const current = COURSE[order.step];
    if (current === undefined || current.hours === 0) return;
    let next = order.step + 1;
    while (!passes(COURSE[next], order, team)) next += 1;
    timers.at(order.since + current.hours * HOUR, () => {
      if (order.user.erased) return;
      order.step = next;
      order.since = timers.clock.now();
      order.status = COURSE[next]?.status ?? order.status;
      if (order.status.startsWith('completed.'))
        order.interpretation = pick(randomOf(seed, 'result', order.number), INTERPRETATIONS);
      this.#orders.put(order.number, order);
      events.emit(order.user, 'labtest.order.updated', orderJson(order));
      if (order.interpretation === 'critical')
        events.emit(order.user, 'labtest.result.critical', { order_id: order.id });
      this.#follow(order, team);
    });
  }
}

function passes(step: (typeof COURSE)[number] | undefined, order: Order, team: Team): boolean {
  if (step === undefined) return true;
  if ('partial' in step) return team.features.partialResults;
  return 'every' in step ? order.number % step.every === 0 : true;
}

export function orderJson(order: Order): object {
  const { id, user, test, account, notes, status, interpretation, origin, createdAt } = order;
  return {
    id,
    team_id: user.teamId,
    user_id: user.id,
    lab_test: { id: test.id, name: test.name, lab: test.lab },
    lab_account_id: account.id,
    clinical_notes: notes,
    status,
    low_level_status: status.split('.').at(-1),
    interpretation,
    origin,
    created_at: createdAt,
  };
}
