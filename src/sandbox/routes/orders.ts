import { z } from 'zod';
import { check, count, uuid } from '../check.ts';
import type { Call, Operation, Reply } from '../operation.ts';
import { orderJson, type Order } from '../orders.ts';
import { Refusal } from '../refusal.ts';
import { randomOf } from '../seeded.ts';
import type { Team } from '../teams.ts';

/** Characters, not UTF-16 units. */
const NOTES = z
  .string()
  .refine((text) => Array.from(text).length <= 1000, 'String should have at most 1000 characters');
const NEW_ORDER = z.object({
  user_id: uuid,
  lab_test_id: uuid,
  lab_account_id: uuid.nullish(),
  clinical_notes: NOTES.nullish(),
  update_reason: z.string().nullish(),
});
const LIST = z.object({
  interpretation: z.enum(['normal', 'abnormal', 'critical']).optional(),
  page: count(1, Number.MAX_SAFE_INTEGER, 1),
  size: count(1, 100, 50),
});
const SLOTS_DAYS = 14;

export const orderOperations: readonly Operation[] = [
  {
    method: 'post',
    path: '/v3/order/create',
    auth: 'team',
    title: 'Place an order; one x-idempotency-key, one order',
    handle: (call) => place(call, 'created'),
  },
  {
    method: 'post',
    path: '/v3/order/import',
    auth: 'team',
    title: 'Import an order; pending lab accounts may be named too',
    handle: (call) => place(call, 'imported'),
  },
  {
    method: 'get',
    path: '/orders',
    auth: 'team',
    title: 'Orders, by interpretation',
    handle: ({ world, bearer, request }) => {
      const { interpretation, page, size } = check(LIST, request.query, 'query');
      const found = world.orders
        .list(bearer.id)
        .filter((order) => interpretation === undefined || order.interpretation === interpretation);
      const orders = found.slice((page - 1) * size, page * size).map(orderJson);
      return { json: { orders, total: found.length, page, size } };
    },
  },
  {
    method: 'post',
    path: '/v3/order/phlebotomy/appointment/availability',
    auth: 'team',
    title: 'Fourteen days of appointment slots',
    handle: ({ world, request }) => {
      const { start_date } = check(z.object({ start_date: z.iso.date() }), request.query, 'query');
      const random = randomOf(world.options.seed, 'slots', start_date);
      const slots = Array.from({ length: SLOTS_DAYS }, (_, n) => {
        const date = new Date(Date.parse(start_date) + n * 86_400_000).toISOString().slice(0, 10);
        const starts = [9, 11, 14].filter(() => random() < 0.8);
        return { date, slots: starts.map((hour) => slotOf(date, hour)) };
      });
      return { json: { timezone: 'UTC', slots } };
    },
  },
];

function place({ world, bearer, request }: Call<Team>, origin: Order['origin']): Reply {
  const body = check(NEW_ORDER, request.body, 'body');
  const header = request.headers['x-idempotency-key'];
  const key = typeof header === 'string' ? header : null;
  const asked = JSON.stringify([origin, request.body]);
  const before = world.orders.repeated(bearer, key, asked);
  if (before !== null)
    return { json: { order: orderJson(before), status: 'success', message: 'order exists' } };
  const test = world.labs.tests.find(({ id }) => id === body.lab_test_id);
  if (test === undefined) throw new Refusal(404, 'Lab test not found');
  const wanted = {
    user: world.users.get(bearer.id, body.user_id),
    test,
    accountId: body.lab_account_id ?? null,
    clinicalNotes: body.clinical_notes ?? null,
    updateReason: body.update_reason ?? null,
    origin,
  };
  const order = world.orders.place(bearer, wanted, key, asked);
  return { json: { order: orderJson(order), status: 'success', message: 'order created' } };
}

function slotOf(date: string, hour: number): object {
  const at = (h: number): string => `${date}T${String(h).padStart(2, '0')}:00:00+00:00`;
  return {
    booking_key: `made-up-${date}-${hour}`,
    start: at(hour),
    end: at(hour + 2),
    is_priority: hour === 9,
  };
}
