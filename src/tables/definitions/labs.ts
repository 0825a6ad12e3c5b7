import { boolean, decimal, integer, json, text } from '../definition.ts';
import { ID, INTERPRETATION, TEAM, USER } from './common.ts';
import { MARKER } from './lab-tests.ts';
import { inherited, inside, position, rowsByName, rowsIn, table } from './table.ts';

export const MARKERS = table({
  name: 'markers',
  description: 'Lab markers, one a row.',
  key: ['id'],
  columns: MARKER,
  nested: [
    rowsIn('expected_results', {
      name: 'marker_expected_results',
      description: 'What results the markers give, one a row, with their LOINC codes.',
      key: ['marker_id', 'id'],
      columns: [
        integer('marker_id', 'the marker', { from: { parent: 'id' }, required: true }),
        integer('result_index', 'position, from 0', { from: { of: 'position' } }),
        integer('id', 'identifier', { required: true }),
        text('name', 'name'),
        text('slug', 'short name'),
        integer('lab_id', 'the laboratory'),
        text('provider_id', 'identifier at the laboratory'),
        ...inside('loinc', [
          integer('id', 'identifier of the LOINC entry'),
          text('code', 'LOINC code'),
          text('name', 'LOINC name'),
          text('slug', 'LOINC short name'),
          text('unit', 'unit of the result'),
        ]),
      ],
    }),
  ],
});

export const LAB_ACCOUNTS = table({
  name: 'lab_accounts',
  description: 'Lab accounts of the team, one a row.',
  key: ['id'],
  columns: [
    ID,
    text('lab', 'lab identifier'),
    text('status', 'active, pending, suspended; open list'),
    text('delegated_flow', 'who handles the flow'),
    text('provider_account_id', 'identifier at the laboratory'),
    text('account_name', 'name'),
    text('org_id', 'organization, UUID'),
    text('default_clinical_notes', 'included on every order under the account'),
    json('allowed_billing', 'object as it came'),
    json('team_id_allowlist', 'array of team ids, UUIDs'),
    json('business_units', 'array of texts'),
  ],
});

export const PARSING_JOBS = table({
  name: 'parsing_jobs',
  description: 'Lab report parsing jobs, one a row.',
  key: ['id'],
  events: ['lab_report.parsing_job.'],
  columns: [
    text('id', 'identifier', { required: true }),
    TEAM,
    USER,
    text('status', 'upload_pending, started, completed, failed, pending_review; open list'),
    text('failure_reason', 'why it failed'),
    boolean('needs_human_review', 'a person is to look at it'),
    boolean('is_reviewed', 'a person has'),
    json('metadata', 'about the report, as it came', { from: 'data.metadata' }),
  ],
  nested: [
    rowsIn('data.results', {
      name: 'parsing_job_results',
      description: 'Biomarkers that were read from uploaded lab reports, one a row.',
      key: ['job_id', 'result_index'],
      columns: [
        text('job_id', 'the parsing job', { from: { parent: 'id' }, required: true }),
        inherited(USER),
        position('result_index'),
        text('test_name', 'biomarker as the report names it', { older: 'name' }),
        text('value', 'the result as the report has it: a number, or words such as `negative`'),
        text('units', 'unit of the value', { older: 'unit' }),
        decimal('min_reference_range', 'least value that is normal'),
        decimal('max_reference_range', 'greatest value that is normal'),
        boolean('is_below_min_range', 'the value is below the least normal one'),
        boolean('is_above_max_range', 'the value is above the greatest normal one'),
        text('type', 'kind of value: numeric, range, comment, boolean …; open list'),
        text('measurement_kind', 'direct, calculated, ratio, unknown; open list'),
        text('sample_type', 'urine, serum_plasma_blood …; open list'),
        text('source_panel_name', 'panel of the report that has the biomarker'),
        text('sensitivity', 'sensitive, insensitive, unknown; open list'),
        INTERPRETATION,
        text('loinc_match_status', 'auto_match, needs_review, no_match; open list'),
        json('loinc_matches', 'array of matches: loinc_code, loinc_name, confidence_score …', {
          older: 'loinc',
        }),
      ],
    }),
  ],
});

const ZIP_CODE = text('zip_code', 'five digits, or nine with a hyphen', { required: true });
const OF_AREA = { ...inherited(ZIP_CODE), description: 'the area' };

export const AREAS = table({
  name: 'areas',
  description: 'Phlebotomy and patient service center coverage, one zip code a row.',
  key: ['zip_code'],
  columns: [ZIP_CODE, ...inside('phlebotomy', [boolean('is_served', 'blood is drawn at home here')])],
  nested: [
    rowsByName('central_labs', {
      name: 'area_centers',
      description: 'Patient service centers near the areas, one laboratory a row.',
      key: ['zip_code', 'lab'],
      columns: [
        OF_AREA,
        text('lab', 'lab identifier', { from: { of: 'key' }, required: true }),
        integer('lab_id', 'the laboratory'),
        json('supported_bill_types', 'array of texts, such as client_bill'),
        ...inside(
          'patient_service_centers',
          [
            boolean('appointment_with_service', 'appointments are made through the service'),
            integer('within_radius', 'centers inside the radius'),
            text('radius_miles', 'the radius, a text', { from: 'radius', unit: 'miles' }),
            json('capabilities', 'array of texts, such as stat'),
          ],
          '',
        ),
      ],
    }),
    rowsIn('phlebotomy.providers', {
      name: 'area_phlebotomy_providers',
      description: 'Who draws blood at home in the areas, one provider a row.',
      key: ['zip_code', 'provider_index'],
      columns: [
        OF_AREA,
        position('provider_index'),
        text('name', 'name of the provider'),
        json('tier', 'array of texts, such as appointment-ready'),
        json('service_types', 'the same, in newer answers'),
      ],
    }),
  ],
});
