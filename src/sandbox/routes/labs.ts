import { z } from 'zod';
import { count, pageOf, PAGING, repeated, uuid, Refusal } from '../check.ts';
import { areaInfo, centersOf, LABS, labAccountJson, labTestJson, RADII } from '../made-up-labs.ts';
import { team, type Operation } from '../operation.ts';

const ORDER_SET = z.object({
  lab_test_ids: z.array(z.string()).default([]),
  add_on: z.object({ provider_ids: z.array(z.string()).default([]) }).nullish(),
});
const ACCOUNTS = z.object({
  lab_account_id: uuid.optional(),
  status: z.enum(['active', 'pending', 'suspended']).optional(),
});
const AREA = z.object({
  zip_code: z.string().regex(/^\d{5}$/, 'String should match pattern ^\\d{5}$'),
  radius: z.enum(RADII).default('25'),
  lab: z.enum(LABS).optional(),
  labs: repeated.pipe(z.array(z.enum(LABS))).optional(),
  lab_account_id: uuid.optional(),
});

export const labOperations: readonly Operation[] = [
  team('post', '/v3/lab_tests/list_order_set_markers', 'Markers of order sets', ({ world, query, body }) => {
    const paging = query(z.object(PAGING));
    const { lab_test_ids, add_on } = body(ORDER_SET);
    const { tests, markers } = world.labs;
    const wanted = new Set<number>();
    for (const id of lab_test_ids) {
      const test = tests.find((one) => one.id === id);
      if (test === undefined) throw new Refusal(404, `Lab test ${id} not found`);
      for (const marker of test.markerIds) wanted.add(marker);
    }
    const added = new Set(add_on?.provider_ids);
    const found = markers.filter(({ id, provider_id }) => wanted.has(id) || added.has(provider_id));
    return pageOf('markers', found, paging);
  }),
  team('get', '/v3/lab_tests/markers', 'Markers, of one lab with lab_slug', ({ world, query }) => {
    const { lab_slug, ...paging } = query(z.object({ ...PAGING, lab_slug: z.string().optional() }));
    const lab = LABS.findIndex((name) => name === lab_slug) + 1;
    const found = world.labs.markers.filter(({ lab_id }) => lab_slug === undefined || lab_id === lab);
    return pageOf('markers', found, paging);
  }),
  team('get', '/v3/lab_tests', 'Lab tests (order sets) that can be ordered', ({ world: { labs }, query }) => {
    const { lab_slug, status = 'active' } = query(
      z.object({ lab_slug: z.string(), status: z.string() }).partial(),
    );
    const found = labs.tests.filter(({ lab }) => (lab_slug ?? lab) === lab && status === 'active');
    return found.map((test) => labTestJson(test, labs));
  }),
  team('get', '/v3/lab_tests/:lab_test_id', 'One lab test', ({ world: { labs }, path }) => {
    const { lab_test_id } = path(z.object({ lab_test_id: uuid }));
    const test = labs.tests.find(({ id }) => id === lab_test_id);
    if (test === undefined) throw new Refusal(404, 'Lab test not found');
    return labTestJson(test, labs);
  }),
  team(
    'get',
    '/v3/order/psc/info',
    'Patient service centers of one lab near a zip code',
    ({ world, query }) => {
      const { zip_code, radius, lab_id } = query(
        AREA.pick({ zip_code: true, radius: true }).extend({ lab_id: count(1, LABS.length, 1) }),
      );
      return centersOf(world.options.seed, zip_code, radius, LABS[lab_id - 1] ?? LABS[0]);
    },
  ),
  team('get', '/v3/lab_test/lab_account', 'Lab accounts of the team', ({ world, bearer, query }) => {
    const { lab_account_id, status } = query(ACCOUNTS);
    const found = world.labs
      .accountsOf(bearer.id)
      .filter((account) => lab_account_id === undefined || account.id === lab_account_id)
      .filter((account) => status === undefined || account.status === status);
    return { data: found.map(labAccountJson) };
  }),
  team(
    'get',
    '/v3/order/area/info',
    'Phlebotomy and service centers near a zip code; lab is deprecated',
    ({ world, bearer, query, response }) => {
      const { zip_code, radius, lab, labs, lab_account_id } = query(AREA);
      const account = world.labs.accountsOf(bearer.id).find(({ id }) => id === lab_account_id);
      if (lab_account_id !== undefined && account === undefined)
        throw new Refusal(404, 'Lab account not found');
      if (lab !== undefined) response.setHeader('deprecation', 'true');
      const asked = labs ?? (lab === undefined ? LABS : [lab]);
      const offered = asked.filter((name) => account === undefined || name === account.lab);
      return areaInfo(world.options.seed, zip_code, radius, offered);
    },
  ),
];
