import { z } from 'zod';
import { pageOf, PAGING, repeated, uuid } from '../check.ts';
import { team, type Call, type Operation } from '../operation.ts';
import { orderJson, INTERPRETATIONS, type Order } from '../order.ts';
import { orderedTest } from '../orders.ts';
import { DAY_MS, dayOf } from '../made-up-health.ts';
import { randomOf } from '../seeded.ts';
import type { Team } from '../teams.ts';

/** Characters, not UTF-16 units. */
const NOTES = z
  .string()
  .refine((text) => Array.from(text).length <= 1000, 'String should have at most 1000 characters');
const ADD_ON = z.object({
  marker_ids: z.array(z.int()).nullish(),
  provider_ids: z.array(z.string()).nullish(),
});
const NEW_ORDER = z.object({
  user_id: uuid,
  lab_test_id: uuid.nullish(),
  order_set: z.object({ lab_test_ids: z.array(uuid).nullish(), add_on: ADD_ON.nullish() }).nullish(),
  lab_account_id: uuid.nullish(),
  clinical_notes: NOTES.nullish(),
  update_reason: z.string().nullish(),
});
const LIST = z.object({
  ...PAGING,
  interpretation: z.enum(INTERPRETATIONS).optional(),
  user_id: uuid.optional(),
  /** Beginnings of statuses: `received`, `completed.testkit`. */
  status: repeated.optional(),
  order_ids: repeated.optional(),
});
const SLOTS_DAYS = 14;

export const orderOperations: readonly Operation[] = [
  team('post', '/v3/order/create', 'Place an order; one x-idempotency-key, one order', (call) =>
    place(call, 'created'),
  ),
  team('post', '/v3/order/import', 'Import an order; pending lab accounts may be named too', (call) =>
    place(call, 'imported'),
  ),
  team('post', '/v3/order', 'The same as /v3/order/create', (call) => place(call, 'created')),
  team('get', '/orders', 'Orders, by interpretation, status, user and id', list),
  team('get', '/v3/orders', 'The same as /orders', list),
  team('get', '/v3/order/:order_id', 'One order', (call) => orderJson(orderOf(call), call.world.labs)),
  team('post', '/v3/order/:order_id/cancel', 'Cancel an order that is not over', (call) => {
    const order = orderOf(call);
    call.world.orders.cancel(order);
    return placed(order, call, 'order cancelled');
  }),
  ...(['phlebotomy', 'psc'] as const).map((kind) =>
    team(
      'post',
      `/v3/order/${kind}/appointment/availability`,
      `Fourteen days of appointment slots, ${kind}`,
      ({ world, query }) => {
        const { start_date = dayOf(world.timers.clock.now()) } = query(
          z.object({ start_date: z.iso.date().optional() }),
        );
        const random = randomOf(world.options.seed, 'slots', start_date);
        const slots = Array.from({ length: SLOTS_DAYS }, (_, n) => {
          const date = dayOf(Date.parse(start_date) + n * DAY_MS);
          const starts = [9, 11, 14].filter(() => random() < 0.8);
          return { location: null, date, slots: starts.map((hour) => slotOf(date, hour)) };
        });
        return { timezone: 'UTC', slots };
      },
    ),
  ),
];

function list({ world, bearer, query }: Call<Team>): object {
  const { interpretation, user_id, status, order_ids, ...paging } = query(LIST);
  const found = world.orders.list(bearer.id).filter((order) => {
    const isOne =
      (order_ids ?? [order.id]).includes(order.id) && (user_id ?? order.user.id) === order.user.id;
    const isSo = (status ?? [order.status]).some((one) => `${order.status}.`.startsWith(`${one}.`));
    return isOne && isSo && (interpretation ?? order.interpretation) === order.interpretation;
  });
  return pageOf(
    'orders',
    found.map((order) => orderJson(order, world.labs)),
    paging,
  );
}

/** @throws Refusal 404 */
function orderOf({ world, bearer, path }: Call<Team>): Order {
  return world.orders.get(bearer.id, path(z.object({ order_id: uuid })).order_id);
}

function placed(order: Order, { world }: Call<Team>, message: string): object {
  return { order: orderJson(order, world.labs), status: 'success', message };
}

function place(call: Call<Team>, way: Order['way']): object {
  const { world, bearer, request, body } = call;
  const { user_id, lab_test_id, order_set, lab_account_id, clinical_notes, update_reason } = body(NEW_ORDER);
  const header = request.headers['x-idempotency-key'];
  const key = typeof header === 'string' ? header : null;
  const asked = JSON.stringify([way, request.body]);
  const before = world.orders.repeated(bearer, key, asked);
  if (before !== null) return placed(before, call, 'order exists');
  const tests = [...(lab_test_id ? [lab_test_id] : []), ...(order_set?.lab_test_ids ?? [])];
  const { marker_ids, provider_ids } = order_set?.add_on ?? {};
  const added = [...(marker_ids ?? []), ...(provider_ids ?? [])];
  const wanted = {
    user: world.users.get(bearer.id, user_id),
    test: orderedTest(world.labs, tests, added),
    accountId: lab_account_id ?? null,
    clinicalNotes: clinical_notes ?? null,
    updateReason: update_reason ?? null,
    way,
  };
  return placed(world.orders.place(bearer, wanted, key, asked), call, 'order created');
}

function slotOf(date: string, hour: number): object {
  const at = (h: number): string => `${date}T${String(h).padStart(2, '0')}:00:00+00:00`;
  const offer = { price: 0, is_priority: hour === 9, num_appointments_available: 1, expires_at: null };
  return { booking_key: `made-up-${date}-${hour}`, start: at(hour), end: at(hour + 2), ...offer };
}
