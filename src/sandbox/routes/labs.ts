import { z } from 'zod';
import { check, count, repeated, uuid } from '../check.ts';
import { areaInfo, LABS, labAccountJson, RADII, type Marker } from '../made-up-labs.ts';
import type { Operation } from '../operation.ts';
import { Refusal } from '../refusal.ts';

const PAGING = { page: count(1, Number.MAX_SAFE_INTEGER, 1), size: count(1, 100, 50) };
const ORDER_SET = z.object({
  lab_test_ids: z.array(z.string()).default([]),
  add_on: z.object({ provider_ids: z.array(z.string()).default([]) }).nullish(),
});
const AREA = z.object({
  zip_code: z.string().regex(/^\d{5}$/, 'String should match pattern ^\\d{5}$'),
  radius: z.enum(RADII).default('25'),
  lab: z.enum(LABS).optional(),
  labs: repeated.pipe(z.array(z.enum(LABS))).optional(),
  lab_account_id: uuid.optional(),
});

export const labOperations: readonly Operation[] = [
  {
    method: 'post',
    path: '/v3/lab_tests/list_order_set_markers',
    auth: 'team',
    title: 'Markers of order sets',
    handle: ({ world, request }) => {
      const { page, size } = check(z.object(PAGING), request.query, 'query');
      const { lab_test_ids, add_on } = check(ORDER_SET, request.body, 'body');
      const { tests, markers } = world.labs;
      const wanted = new Set<number>();
      for (const id of lab_test_ids) {
        const test = tests.find((one) => one.id === id);
        if (test === undefined) throw new Refusal(404, `Lab test ${id} not found`);
        for (const marker of test.markerIds) wanted.add(marker);
      }
      const added = new Set(add_on?.provider_ids);
      const found = markers.filter(({ id, provider_id }) => wanted.has(id) || added.has(provider_id));
      return { json: pageOf(found, page, size) };
    },
  },
  {
    method: 'get',
    path: '/v3/lab_tests/markers',
    auth: 'team',
    title: 'Markers, of one lab with lab_slug',
    handle: ({ world, request }) => {
      const schema = z.object({ ...PAGING, lab_slug: z.string().optional() });
      const { page, size, lab_slug } = check(schema, request.query, 'query');
      const lab = LABS.findIndex((name) => name === lab_slug) + 1;
      const found = world.labs.markers.filter(({ lab_id }) => lab_slug === undefined || lab_id === lab);
      return { json: pageOf(found, page, size) };
    },
  },
  {
    method: 'get',
    path: '/v3/lab_test/lab_account',
    auth: 'team',
    title: 'Lab accounts of the team',
    handle: ({ world, bearer, request }) => {
      const status = z.enum(['active', 'pending', 'suspended']).optional();
      const query = check(z.object({ lab_account_id: uuid.optional(), status }), request.query, 'query');
      const found = world.labs.accountsOf(bearer.id).filter((account) => {
        const named = query.lab_account_id === undefined || account.id === query.lab_account_id;
        return named && (query.status === undefined || account.status === query.status);
      });
      return { json: { data: found.map(labAccountJson) } };
    },
  },
  {
    method: 'get',
    path: '/v3/order/area/info',
    auth: 'team',
    title: 'Phlebotomy and service centers near a zip code; lab is deprecated',
    handle: ({ world, bearer, request }) => {
      const { zip_code, radius, lab, labs, lab_account_id } = check(AREA, request.query, 'query');
      const account = world.labs.accountsOf(bearer.id).find(({ id }) => id === lab_account_id);
      if (lab_account_id !== undefined && account === undefined)
        throw new Refusal(404, 'Lab account not found');
      const asked = labs ?? (lab === undefined ? LABS : [lab]);
      const offered = account === undefined ? asked : asked.filter((name) => name === account.lab);
      return {
        json: areaInfo(world.options.seed, zip_code, radius, offered),
        ...(lab === undefined ? {} : { headers: { deprecation: 'true' } }),
      };
    },
  },
];

function pageOf(markers: readonly Marker[], page: number, size: number): object {
  return { markers: markers.slice((page - 1) * size, page * size), total: markers.length, page, size };
}
